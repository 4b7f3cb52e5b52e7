import { type CapabilityGrant, type GrantEvent, instantOf, timestampOf } from '@sharedos/contracts';
import { GRANTS_MAX } from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { AuthorityIndex } from './authority-index.ts';
import { NAMESPACE, NOON, alice, bob, carol, grantOf, issued, revoked } from '../authorizer.fixture.ts';

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
    const page = (after?: string) => {
      const { grants, next } = index.list(NAMESPACE, 'issuer', alice, { limit: 3, after });
      return [idsOf(grants), next];
    };
    expect(page()).toEqual([['a', 'b', 'c'], 'c']);
    expect(page('c')).toEqual([['d'], undefined]);
    expect(page('aa')).toEqual([['b', 'c', 'd'], undefined]);
  });

  it('shows what was revoked as revoked, and nothing of others', () => {
    const listed = (namespaceId: string, role: 'issuer' | 'subject') => index.list(namespaceId, role, bob, { limit: 9 }).grants;
    expect(listed(NAMESPACE, 'subject').map(({ id, revokedAt }) => [id, revokedAt])).toEqual([
      ['a', undefined],
      ['b', at(5)],
      ['c', undefined],
      ['d', undefined],
    ]);
    expect(listed('elsewhere', 'subject')).toEqual([]);
    expect(listed(NAMESPACE, 'issuer')).toEqual([]);
  });
});

describe('what an answer costs', () => {
  /** Rows looked at by one question. */
  const stepsOf = (index: AuthorityIndex, ask: () => unknown): number => {
    const before = index.steps;
    ask();
    return index.steps - before;
  };
  const idsOfMany = (many: number, prefix: string): readonly string[] => Array.from({ length: many }, (_, number) => `${prefix}-${number}`);

  it('does not grow with the number of grants that ended', () => {
    const history = (ended: number): AuthorityIndex =>
      folded([
        ...idsOfMany(ended, 'revoked').flatMap((id) => [issued(grantOf(id)), revoked(id)]),
        ...idsOfMany(ended, 'expired').map((id) => issued(grantOf(id, { expiresAt: at(1) }))),
        ...idsOfMany(200, 'live').map((id) => issued(grantOf(id))),
      ]);
    const [few, many] = [history(300), history(6_000)];
    const open = (index: AuthorityIndex) => () => expect(held(index, Infinity, noon + 9e8)).toHaveLength(GRANTS_MAX);
    expect(stepsOf(many, open(many))).toBe(stepsOf(few, open(few)));
  });

  it('is paid once for each change of what the holder has', () => {
    const index = folded(idsOfMany(50, 'live').map((id) => issued(grantOf(id, { expiresAt: at(200) }))));
    const first = index.heldAt(NAMESPACE, bob, alice, 50, noon);
    expect(stepsOf(index, () => expect(index.heldAt(NAMESPACE, bob, alice, 60, noon + 5)).toBe(first))).toBe(0);
    index.apply(NAMESPACE, revoked('live-7', at(70)), noon + 70 * 60_000, 70);
    expect(index.heldAt(NAMESPACE, bob, alice, 60, noon + 5)).toHaveLength(50);
    expect(index.heldAt(NAMESPACE, bob, alice, 70, noon + 70 * 60_000)[49]?.grant).toMatchObject({ id: 'live-7', revokedAt: at(70) });
  });

  it('stops at one more live grant than may be', () => {
    const index = folded(idsOfMany(1_000, 'live').map((id) => issued(grantOf(id))));
    const asked = (liveMax: number) => index.heldAt(NAMESPACE, bob, alice, Infinity, noon, liveMax).length;
    expect(stepsOf(index, () => expect(asked(20)).toBe(21))).toBe(21);
    expect([asked(999), asked(1_000), asked(2_000), asked(20)]).toEqual([1_000, 1_000, 1_000, 21]);
  });
});
