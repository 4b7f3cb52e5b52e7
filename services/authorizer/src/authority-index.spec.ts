import { type CapabilityGrant, type GrantEvent, instantOf, timestampOf } from '@sharedos/contracts';
import { GRANTS_MAX } from '@sharedos/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AuthorityIndex } from './authority-index.ts';
import { NAMESPACE, NOON, alice, bob, carol, grantOf, issued, revoked } from './authorizer.fixture.ts';

const noon = instantOf(NOON) ?? NaN;
const at = (minutes: number): string => timestampOf(noon + minutes * 60_000);

/** Folds events, each at its place in the list, and a minute after the one before it unless told otherwise. */
const folded = (events: readonly GrantEvent[], minuteOf: (position: number) => number = (position) => position): AuthorityIndex => {
  const index = new AuthorityIndex();
  events.forEach((event, place) => index.apply(NAMESPACE, event, noon + minuteOf(place + 1) * 60_000, place + 1));
  return index;
};
const held = (index: AuthorityIndex, position = Infinity, admittedAt = noon + 3_600_000): readonly CapabilityGrant[] =>
  index.heldAt(NAMESPACE, bob, alice, position, admittedAt).map(({ grant }) => grant);
const idsOf = (grants: readonly CapabilityGrant[]): readonly string[] => grants.map(({ id }) => id);

describe('the grants that a subject holds from an issuer', () => {
  it('are walked unbounded first, then by earliest expiry, issue and id', () => {
    const events = [
      grantOf('bounded', { maxUses: 1, expiresAt: at(90) }),
      grantOf('b'),
      grantOf('a'),
      grantOf('older', {}, { issuedAt: at(-1) }),
      grantOf('late', { expiresAt: at(200) }),
      grantOf('soon', { expiresAt: at(100) }),
    ].map(issued);
    expect(idsOf(held(folded(events)))).toEqual(['soon', 'late', 'older', 'a', 'b', 'bounded']);
  });

  it('are none of another subject, issuer or namespace, however alike the names', () => {
    const index = folded([
      issued(grantOf('of-carol', {}, { subject: carol })),
      issued(grantOf('from-carol', {}, { issuer: carol })),
      issued(grantOf('elsewhere', {}, { namespaceId: `${NAMESPACE}.x` })),
      issued(grantOf('of-a-human', {}, { subject: { kind: 'human', userId: 'bob' } })),
    ]);
    expect(held(index)).toEqual([]);
  });

  it('are followed by ended ones, the most recently ended first', () => {
    const index = folded([
      issued(grantOf('expired', { expiresAt: at(50) })),
      issued(grantOf('revoked-first')),
      issued(grantOf('revoked-last')),
      issued(grantOf('live')),
      revoked('revoked-first', at(40)),
      revoked('revoked-last', at(55)),
    ]);
    expect(idsOf(held(index))).toEqual(['live', 'revoked-last', 'expired', 'revoked-first']);
  });

  it('are cut at the limit among ended ones, so an agent does not lock up with age', () => {
    const many = Array.from({ length: GRANTS_MAX + 20 }, (_, number) => `g-${number}`);
    const ofRevoked = folded([...many.map((id) => issued(grantOf(id))), issued(grantOf('live')), ...many.map((id) => revoked(id))]);
    expect(held(ofRevoked)).toHaveLength(GRANTS_MAX);
    expect(held(ofRevoked)[0]?.id).toBe('live');
    const ofExpired = folded([...many.map((id) => issued(grantOf(id, { expiresAt: at(1) }))), issued(grantOf('live'))]);
    expect(held(ofExpired)).toHaveLength(GRANTS_MAX);
    expect(held(ofExpired)[0]?.id).toBe('live');
  });

  it('are all returned when more of them are live than the limit, for the loader to refuse', () => {
    const many = Array.from({ length: GRANTS_MAX + 3 }, (_, number) => issued(grantOf(`g-${number}`)));
    const index = folded([issued(grantOf('ended', { expiresAt: at(1) })), ...many]);
    expect(held(index)).toHaveLength(GRANTS_MAX + 3);
    expect(idsOf(held(index))).not.toContain('ended');
  });
});

describe('a view of the log at a position', () => {
  const index = folded([issued(grantOf('a')), issued(grantOf('b')), revoked('a', at(3)), revoked('b', at(4))]);

  it('is what it was, side by side with every later one', () => {
    const seen = [0, 1, 2, 3, 4].map((position) =>
      held(index, position).map(({ id, revokedAt }) => (revokedAt === undefined ? id : `-${id}`)),
    );
    expect(seen).toEqual([[], ['a'], ['a', 'b'], ['b', '-a'], ['-b', '-a']]);
  });

  it('resolves no ancestor that was issued later', () => {
    expect(index.grantAt(NAMESPACE, 'b', 1, noon)).toBeUndefined();
    expect(index.grantAt(NAMESPACE, 'b', 2, noon)?.grant.revokedAt).toBeUndefined();
    expect(index.grantAt(NAMESPACE, 'b', 4, noon + 3_600_000)?.grant.revokedAt).toBe(at(4));
    expect(index.grantAt('elsewhere', 'b', 4, noon)).toBeUndefined();
  });

  it('hands out a revocation as no later than the admission, whatever clock stamped it', () => {
    const ahead = folded([issued(grantOf('a')), revoked('a', at(500))]);
    expect(held(ahead, 2, noon)).toMatchObject([{ id: 'a', revokedAt: NOON }]);
    expect(ahead.grantAt(NAMESPACE, 'a', 2, noon)?.window.revokedAt).toBe(noon);
  });

  it('keeps the first revocation of a grant', () => {
    expect(held(folded([issued(grantOf('a')), revoked('a', at(2)), revoked('a', at(9))]))).toMatchObject([{ revokedAt: at(2) }]);
  });

  it('knows the greatest instant of any event up to it, also where clocks went back', () => {
    const minutes = [5, 2, 9, 1];
    const skewed = folded(
      [issued(grantOf('a')), issued(grantOf('b')), issued(grantOf('c')), issued(grantOf('d'))],
      (position) => minutes[position - 1] ?? 0,
    );
    expect([0, 1, 2, 3, 4, 99].map((position) => skewed.latestInstant(position))).toEqual([
      0,
      ...[5, 5, 9, 9, 9].map((minute) => noon + minute * 60_000),
    ]);
  });
});

describe('listing grants', () => {
  const index = folded([
    ...['d', 'b', 'a', 'c'].map((id) => issued(grantOf(id))),
    issued(grantOf('not-mine', {}, { issuer: carol, subject: carol })),
    revoked('b', at(5)),
  ]);

  it('goes by id, a page at a time, without losing or repeating one', () => {
    expect(idsOf(index.list(NAMESPACE, 'issuer', alice, { limit: 3 }))).toEqual(['a', 'b', 'c']);
    expect(idsOf(index.list(NAMESPACE, 'issuer', alice, { limit: 3, after: 'c' }))).toEqual(['d']);
    expect(idsOf(index.list(NAMESPACE, 'issuer', alice, { limit: 3, after: 'aa' }))).toEqual(['b', 'c', 'd']);
  });

  it('shows what was revoked as revoked, and nothing of others', () => {
    expect(index.list(NAMESPACE, 'subject', bob, { limit: 9 }).map(({ id, revokedAt }) => [id, revokedAt])).toEqual([
      ['a', undefined],
      ['b', at(5)],
      ['c', undefined],
      ['d', undefined],
    ]);
    expect(index.list('elsewhere', 'issuer', alice, { limit: 9 })).toEqual([]);
    expect(index.list(NAMESPACE, 'issuer', bob, { limit: 9 })).toEqual([]);
  });
});

/** The rule in longhand: fold only what stands at or below the position, then sort out the rest one grant at a time. */
const naive = (events: readonly GrantEvent[], position: number, admittedAt: number): readonly (readonly [string, string | undefined])[] => {
  const grants: { grant: CapabilityGrant; revokedAt?: number; place: number }[] = [];
  events.slice(0, position).forEach((event, place) => {
    if (event.type === 'GrantIssued') grants.push({ grant: event.grant, place });
    else {
      const found = grants.find(({ grant }) => grant.id === event.grantId);
      if (found !== undefined && found.revokedAt === undefined) found.revokedAt = Date.parse(event.revokedAt);
    }
  });
  const expiry = (grant: CapabilityGrant) =>
    grant.constraints.expiresAt === undefined ? Infinity : Date.parse(grant.constraints.expiresAt);
  const mine = grants.filter(
    ({ grant }) =>
      grant.subject.kind === 'agent' && grant.issuer.kind === 'human' && JSON.stringify(grant.issuer) === JSON.stringify(alice),
  );
  const isLive = ({ grant, revokedAt }: (typeof grants)[number]) => revokedAt === undefined && expiry(grant) > admittedAt;
  const text = ({ grant }: (typeof grants)[number]) => {
    const order = [
      grant.constraints.maxUses === undefined ? 0 : 1,
      expiry(grant) === Infinity ? 9e15 : expiry(grant),
      Date.parse(grant.issuedAt),
    ];
    return `${order.map((part) => String(part).padStart(20, '0')).join(' ')} ${grant.id}`;
  };
  const live = mine.filter(isLive).sort((a, b) => (text(a) < text(b) ? -1 : 1));
  const end = ({ grant, revokedAt = Infinity }: (typeof grants)[number]) => Math.min(expiry(grant), revokedAt);
  const ended = mine.filter((each) => !isLive(each)).sort((a, b) => end(b) - end(a) || b.place - a.place);
  return [...live, ...ended].map(({ grant, revokedAt }) => [
    grant.id,
    revokedAt === undefined ? undefined : timestampOf(Math.min(revokedAt, admittedAt)),
  ]);
};

it('answers at every position what folding the events up to it would', () => {
  // Few names that look alike, so that they meet.
  const id = fc.constantFrom('cell-3', 'cell-30', 'cell-03', 'Cell-3', 'cell-3.', 'cell');
  const minute = fc.integer({ min: -5, max: 20 });
  const issue = fc.record({
    id,
    issuer: fc.constantFrom(alice, alice, carol),
    bounded: fc.boolean(),
    expires: fc.option(minute),
    issuedAt: minute,
  });
  const step = fc.oneof({ weight: 2, arbitrary: issue }, { weight: 1, arbitrary: fc.record({ revokes: id, stamped: minute }) });
  let premiseMet = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 14 }), minute, (steps, admitted) => {
      const known = new Set<string>();
      const events = steps.flatMap((each): GrantEvent[] => {
        if ('revokes' in each) return known.has(each.revokes) ? [revoked(each.revokes, at(each.stamped))] : [];
        if (known.has(each.id)) return [];
        known.add(each.id);
        const constraints = { ...(each.bounded ? { maxUses: 2 } : {}), ...(each.expires === null ? {} : { expiresAt: at(each.expires) }) };
        return [issued(grantOf(each.id, constraints, { issuer: each.issuer, issuedAt: at(each.issuedAt) }))];
      });
      const index = folded(events);
      const admittedAt = noon + admitted * 60_000;
      for (let position = 0; position <= events.length; position += 1) {
        const expected = naive(events, position, admittedAt);
        if (expected.some(([, revokedAt]) => revokedAt !== undefined)) premiseMet += 1;
        expect(held(index, position, admittedAt).map((grant) => [grant.id, grant.revokedAt])).toEqual(expected);
      }
    }),
    { numRuns: 300 },
  );
  expect(premiseMet).toBeGreaterThan(100);
});
