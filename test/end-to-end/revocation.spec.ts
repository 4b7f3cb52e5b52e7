import { randomBytes } from 'node:crypto';
import type { SharedOS } from '@sharedos/client';
import type { AgentAddress } from '@sharedos/contracts';
import { ATTRIBUTE } from '@sharedos/telemetry';
import { type ReceivedSpan, type SpanReceiver, startSpanReceiver } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CallAnswer, answerOf, callsOf, submit, turnOf } from '../support/many-turns.ts';
import { answersByReplica, tracedTo } from '../support/replicas.ts';
import { startStaleAuthorizer } from '../support/stale-authorizer.ts';
import { ALICE, type TestSystem, startTestSystem } from '../support/test-system.ts';

const ROUNDS = 200;
/** Rounds under way at once. A principal may have 50 turns queued. */
const AT_ONCE = 16;
const BEHIND_MS = -250;
const SPANS_DEADLINE_MS = 60_000;
const TOKEN_SECRET = randomBytes(32).toString('base64url');

// Several processes share this machine's cores with whatever else runs: nothing here measures time.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

let system: TestSystem;
let spans: SpanReceiver;
let alice: SharedOS;

beforeAll(async () => {
  spans = await startSpanReceiver();
  system = await startTestSystem({
    replicas: { authorizer: 2, 'tool-executor': 2 },
    // One of each with its clock behind: the instant that an executor states must not make up for an authorizer that is late.
    env: (service, replica) => ({
      ...tracedTo(spans),
      ...(replica === 1 ? { SHAREDOS_CLOCK_OFFSET_MS: String(BEHIND_MS) } : {}),
      ...(service === 'authorizer' ? { SHAREDOS_TOKEN_SECRET: TOKEN_SECRET } : {}),
    }),
  });
  alice = await system.client(ALICE);
  await system.files(ALICE, { 'standing/note.md': 'Always readable', 'round/note.md': 'Readable until revoked' });
});
afterAll(async () => {
  await system?.stop();
  await spans?.stop();
});

const read = { tool: 'files.read', arguments: { path: ['round', 'note.md'] } };

interface Round {
  readonly before: CallAnswer | undefined;
  readonly after: CallAnswer | undefined;
}

const playRound = async (agent: AgentAddress, name: string): Promise<Round> => {
  await system.grant(`round-${name}`, { path: ['round'], actions: ['read'] }, { to: agent });
  const ask = async (executionId: string): Promise<CallAnswer | undefined> =>
    callsOf(await answerOf(await submit(alice, turnOf({ agent, executionId, calls: [read] }))))[0];
  const before = await ask(`${name}-before`);
  const revoked = await alice.grants.revoke(`round-${name}`);
  if (!revoked.ok) throw new Error(`the grant of ${name} was not revoked: ${JSON.stringify(revoked.error)}`);
  // Published only now: the revocation is acknowledged.
  return { before, after: await ask(`${name}-after`) };
};

/** Rounds at once are of different agents, so that no other round's grant can allow what this one's no longer does. */
const playRounds = async (prefix: string, count: number): Promise<readonly Round[]> => {
  const rounds: Round[] = [];
  let next = 0;
  const play = async (agent: AgentAddress): Promise<void> => {
    const invoke = { namespace: 'sharedos.execution', path: ['agent', agent.agentId], actions: ['invoke'], scope: 'exact' } as const;
    await system.grant(`run-${agent.agentId}`, invoke, { to: agent });
    // Keeps `files.read` in the catalogue, so that what refuses a call is its exact decision and not a listing.
    await system.grant(`standing-${agent.agentId}`, { path: ['standing'], actions: ['read'] }, { to: agent });
    while (next < count) rounds.push(await playRound(agent, `${prefix}-${next++}`));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, player) => play({ kind: 'agent', agentId: `${prefix}-${player}` })));
  return rounds;
};

const isStale = ({ after }: Round): boolean => after?.status === 'succeeded';

/** For each round whose records are complete: who took the revocation, and who opened the turn after it. */
const whoAnswered = (all: readonly ReceivedSpan[]): ReadonlyMap<string, number> => {
  const revokedBy = new Map<string, string>();
  const openedBy = new Map<string, string>();
  const instanceOf = new Map(
    all.filter(({ name, kind }) => name === 'authority.open' && kind === 'server').map(({ traceId, instance }) => [traceId, instance]),
  );
  const revoking = new Set(all.filter(({ name, kind }) => name === 'grant.revoke' && kind === 'server').map(({ spanId }) => spanId));
  for (const { name, traceId, parentSpanId, instance, attributes } of all) {
    const grantId = attributes[ATTRIBUTE.grantId];
    if (name === 'grant.command' && typeof grantId === 'string' && revoking.has(parentSpanId ?? ''))
      revokedBy.set(grantId.replace('round-', ''), instance);
    const executionId = attributes[ATTRIBUTE.executionId];
    const opener = instanceOf.get(traceId);
    if (name === 'envelope.turn' && typeof executionId === 'string' && executionId.endsWith('-after') && opener !== undefined)
      openedBy.set(executionId.replace('-after', ''), opener);
  }
  const pairs = new Map<string, number>();
  for (const [round, revoker] of revokedBy) {
    const opener = openedBy.get(round);
    if (opener === undefined) continue;
    const pair = `revoked by ${revoker}, opened by ${opener}`;
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
};

describe('a revocation that was acknowledged before a turn was requested', () => {
  let rounds: readonly Round[];

  it(`is seen by that turn in each of ${ROUNDS} rounds over two authorizers, one of them 250 ms behind`, async () => {
    rounds = await playRounds('fresh', ROUNDS);
    expect(rounds).toHaveLength(ROUNDS);
    expect(rounds.filter(isStale)).toEqual([]);
  });

  it('had let the turn before it through in every round', () => {
    expect(rounds.filter(({ before }) => before?.status !== 'succeeded')).toEqual([]);
  });

  it('is refused as no_matching_grant, whatever the clocks say', () => {
    expect(rounds.filter(({ after }) => after?.status !== 'denied' || after.code !== 'no_matching_grant')).toEqual([]);
  });

  it('was taken by either replica and met a turn opened by either', async () => {
    const complete = (all: readonly ReceivedSpan[]): boolean =>
      [...whoAnswered(all).values()].reduce((sum, count) => sum + count, 0) === ROUNDS;
    const pairs = whoAnswered(await spans.waitFor(complete, SPANS_DEADLINE_MS));
    expect([...pairs.keys()].sort()).toEqual(
      [1, 2].flatMap((revoker) => [1, 2].map((opener) => `revoked by ${revoker}, opened by ${opener}`)),
    );
    expect(Math.min(...pairs.values())).toBeGreaterThan(ROUNDS / 20);
    expect(Object.keys(answersByReplica(spans.spans(), 'authority.decide')).sort()).toEqual(['1', '2']);
  });

  it('is missed as soon as one replica neither asks the log how far it reaches nor keeps up with it', async () => {
    const stale = await startStaleAuthorizer(system.stack, TOKEN_SECRET);
    try {
      expect((await playRounds('stale', 2 * AT_ONCE)).filter(isStale).length).toBeGreaterThan(0);
    } finally {
      await stale.stop();
    }
  });
});
