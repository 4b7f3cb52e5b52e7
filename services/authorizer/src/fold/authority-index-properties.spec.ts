import { type Address, type GrantEvent, instantOf, timestampOf } from '@sharedos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AuthorityIndex } from './authority-index.ts';
import { NAMESPACE, NOON, alice, bob, carol, grantOf, issued, loaded, revoked } from '../authorizer.fixture.ts';
import { type Happened, NaiveIndex } from './naive-index.fixture.ts';

const noon = instantOf(NOON) ?? NaN;
const minutes = (minute: number): number => noon + minute * 60_000;

// Few names that look alike, so that they meet, and instants that are often the same.
const ids = ['cell-3', 'cell-30', 'cell-03', 'Cell-3', 'cell-3.', 'cell', '\u{1F511}', '\uFFFD', 'é', 'e\u0301'] as const;
const someId = fc.constantFrom(...ids);
const minute = fc.integer({ min: -4, max: 12 });
const people: readonly Address[] = [alice, bob, carol, { kind: 'human', userId: 'bob' }, { kind: 'service', serviceId: 'alice' }];
const issue = fc.record({
  id: someId,
  issuer: fc.constantFrom(alice, alice, alice, carol),
  subject: fc.constantFrom(bob, bob, bob, alice, people[3] as Address, people[4] as Address),
  bounded: fc.boolean(),
  expires: fc.option(minute),
  issuedAt: minute,
  parent: fc.option(someId),
  stamped: minute,
});
const step = fc.oneof(
  { weight: 2, arbitrary: issue },
  { weight: 1, arbitrary: fc.record({ revokes: someId, as: minute, stamped: minute }) },
);

const history = fc.array(step, { minLength: 1, maxLength: 16 }).map((steps): readonly Happened[] => {
  const known = new Set<string>();
  return steps.flatMap((each): Happened[] => {
    const at = minutes(each.stamped);
    if ('revokes' in each) return known.has(each.revokes) ? [{ event: revoked(each.revokes, timestampOf(minutes(each.as))), at }] : [];
    if (known.has(each.id)) return [];
    known.add(each.id);
    const constraints = {
      ...(each.bounded ? { maxUses: 2 } : {}),
      ...(each.expires === null ? {} : { expiresAt: timestampOf(minutes(each.expires)) }),
    };
    const { id, issuer, subject, parent } = each;
    const derived = parent === null || parent === id || !known.has(parent) ? {} : { parentGrantId: parent };
    const event: GrantEvent = issued(
      grantOf(id, constraints, { issuer, subject, issuedAt: timestampOf(minutes(each.issuedAt)), ...derived }),
    );
    return [{ event, at }];
  });
});

/** An index that folded a history; or the first part of it, was kept, started again from that, and folded the rest. */
const folded = (happened: readonly Happened[], restartAfter: number | undefined): AuthorityIndex => {
  let index = new AuthorityIndex();
  happened.forEach(({ event, at }, place) => {
    if (place === restartAfter) index = AuthorityIndex.restore(loaded(index.snapshot()));
    index.apply(NAMESPACE, event, at, place + 1);
  });
  return index;
};

describe('the index, beside a second statement of it', () => {
  it('sees at every position, for every admission, what folding the events up to it would', () => {
    let revocations = 0;
    const property = fc.property(history, minute, fc.option(fc.nat(16)), (happened, admitted, restartAfter) => {
      const naive = new NaiveIndex(NAMESPACE, happened);
      const index = folded(happened, restartAfter ?? undefined);
      const positions = Array.from({ length: happened.length + 1 }, (_, position) => position);
      // Forwards and backwards: what was answered before must not show in the next answer.
      for (const position of [...positions, ...positions.reverse(), happened.length]) {
        const admittedAt = minutes(admitted + (position % 3));
        const held = people.map((subject) => index.heldAt(NAMESPACE, subject, alice, position, admittedAt).map(({ grant }) => grant));
        const expected = people.map((subject) => naive.heldAt(subject, alice, position, admittedAt));
        revocations += expected.flat().filter(({ revokedAt }) => revokedAt !== undefined).length;
        expect(held).toEqual(expected);
        expect([index.latestInstant(position), ids.map((id) => index.grantAt(NAMESPACE, id, position, admittedAt)?.grant)]).toEqual([
          naive.latestInstant(position),
          ids.map((id) => naive.grantAt(id, position, admittedAt)),
        ]);
      }
    });
    fc.assert(property, { numRuns: 200 });
    expect(revocations).toBeGreaterThan(100);
  });

  it('lists the same, by id and a page at a time', () => {
    const property = fc.property(history, fc.option(someId), fc.integer({ min: 1, max: 4 }), (happened, after, limit) => {
      const naive = new NaiveIndex(NAMESPACE, happened);
      const index = folded(happened, 3);
      const from = after ?? undefined;
      const inPages = (
        first: string | undefined,
        page: (asked: { after: string | undefined; limit: number }) => ReturnType<AuthorityIndex['children']>,
      ) => {
        const all: unknown[] = [];
        let next = first;
        do {
          const answer = page({ after: next, limit });
          expect(answer.grants.length).toBeLessThanOrEqual(limit);
          all.push(...answer.grants);
          next = answer.next;
        } while (next !== undefined);
        return all;
      };
      for (const principal of people)
        for (const role of ['issuer', 'subject'] as const)
          expect(inPages(from, (asked) => index.list(NAMESPACE, role, principal, asked))).toEqual(naive.list(role, principal, from));
      for (const id of ids) expect(inPages(undefined, (asked) => index.children(NAMESPACE, id, asked))).toEqual(naive.children(id));
    });
    fc.assert(property, { numRuns: 150 });
  });

  it('tells each principal what changed for it, and of no change twice', () => {
    const property = fc.property(history, fc.nat(16), fc.integer({ min: 1, max: 4 }), (happened, position, limit) => {
      const naive = new NaiveIndex(NAMESPACE, happened);
      const index = folded(happened, 5);
      const head = happened.length;
      const from = Math.min(position, head);
      for (const principal of people) {
        const told: string[] = [];
        for (let after = from; after < head;) {
          const { grants, upTo } = index.changedAfter(NAMESPACE, principal, after, { limit, head });
          expect(upTo).toBeGreaterThan(after);
          told.push(...grants.map(({ id }) => id));
          after = upTo;
        }
        expect([...new Set(told)]).toEqual(naive.changedAfter(principal, from));
      }
    });
    fc.assert(property, { numRuns: 200 });
  });
});
