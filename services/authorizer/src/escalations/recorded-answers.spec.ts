import { readFileSync } from 'node:fs';
import { type Address, type Json, type LogEvent, hashOf } from '@sharedos/contracts';
import { type StreamId, logSubject, memoryEventStore } from '@sharedos/event-store';
import { describe, expect, it } from 'vitest';
import { AuthorityFold } from '../fold/authority-fold.ts';
import { AuthorityIndex } from '../fold/authority-index.ts';
import { loaded, settled } from '../authorizer.fixture.ts';
import { NamespaceIndex } from '../fold/namespace-index.ts';

// Recorded by this release, and never to be changed: what was once written is read the same for ever. A later release adds files.
interface Line {
  readonly stream: StreamId;
  /** Of one append. */
  readonly events: readonly LogEvent[];
}
const LINES = readFileSync(new URL('../recorded/bound-grants.v1.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Line);

const ALICE: Address = { kind: 'human', userId: 'alice' };
const BOB: Address = { kind: 'agent', agentId: 'bob' };
const ADMITTED = Date.parse('2026-01-01T12:45:00Z');

const followed = async () => {
  const store = memoryEventStore({ storeId: 'log' });
  const troubles: string[] = [];
  const fold = new AuthorityFold((what) => void troubles.push(what));
  fold.follow(store);
  const positions = LINES.map(({ stream, events }) => store.appendRaw(logSubject(stream), Buffer.from(JSON.stringify(events))));
  await settled();
  expect(troubles).toEqual([]);
  return { fold, positions };
};
/** What bob holds at a position, and which call each of it is bound to. */
const heldAt = (index: AuthorityIndex, position: number) =>
  index.heldAt('w1', BOB, ALICE, position, ADMITTED).map(({ grant, boundTo }) => [grant.id, boundTo?.[0], grant.revokedAt]);

const BOUND_A = ['escalation-call-a', 'a', undefined];
const BOUND_B = ['escalation-call-b', 'b', undefined];
const PLAIN = ['plain', undefined, undefined];
const REVOKED_A = ['escalation-call-a', 'a', '2026-01-01T12:40:00.000Z'];

describe('the recorded answers about calls', () => {
  it('fold to grants that were bound from the first position they are at, for ever', async () => {
    const { fold, positions } = await followed();
    expect(positions.map((position) => heldAt(fold.index, position))).toEqual([
      [],
      [BOUND_A],
      [BOUND_A],
      [BOUND_A],
      [BOUND_A, BOUND_B],
      [BOUND_A, BOUND_B],
      [BOUND_A, BOUND_B, PLAIN],
      [BOUND_B, PLAIN, REVOKED_A],
    ]);
  });

  it('fold to the same from a snapshot', async () => {
    const { fold, positions } = await followed();
    const restored = AuthorityIndex.restore(loaded(fold.index.snapshot()));
    for (const position of positions) expect(heldAt(restored, position)).toEqual(heldAt(fold.index, position));
  });

  it('fold to questions that hold the call, for ever', async () => {
    const { fold } = await followed();
    const questions = fold.namespaces.escalationsAt('w1', fold.position);
    expect(questions.map(({ status, question }) => [status, question.call?.tool, question.call?.arguments['text']])).toEqual([
      ['approved', 'files.replace', 'A'],
      ['approved', 'files.replace', 'B'],
    ]);
    const kept = questions.map((state) => [state.status, state.question, 'grant' in state ? state.grant : null]);
    expect(hashOf(kept as unknown as Json)).toBe('174e22db00c3f7d3e38c37ddf672be671e82663becd761b7f07da47f3a0220cd');
    const restored = NamespaceIndex.restore(JSON.parse(JSON.stringify(fold.namespaces.snapshot())));
    expect(restored?.escalationsAt('w1', fold.position)).toEqual(questions);
  });
});
