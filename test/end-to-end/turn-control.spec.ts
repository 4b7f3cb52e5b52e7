import type { ScriptedCall, SharedOS } from '@sharedos/client';
import type { TurnState } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Executors, executorsOf } from '../support/executors.ts';
import { answerOf, submit, turnOf } from '../support/many-turns.ts';
import { ALICE, AUDITOR, BOB, type TestSystem, startTestSystem } from '../support/test-system.ts';
import { type TurnEvidence, turnEvidence } from '../support/turn-evidence.ts';

const DEADLINE_MS = 30_000;
/** One place, so that a second turn waits behind the first. */
const ONE_AT_ONCE = { SHAREDOS_TURNS_AT_ONCE: '1' };

let system: TestSystem;
let executors: Executors;
let evidence: TurnEvidence;
let alice: SharedOS;
let bob: SharedOS;

beforeAll(async () => {
  system = await startTestSystem({ turnLeaseMs: 1_500, env: (service) => (service === 'tool-executor' ? ONE_AT_ONCE : {}) });
  executors = executorsOf(system.stack);
  evidence = await turnEvidence(system.stack);
  [alice, bob] = await Promise.all([system.client(ALICE), system.client(BOB)]);
  const leaves = Object.fromEntries(Array.from({ length: 500 }, (_, leaf) => [`tree/leaf-${leaf}`, 'Nothing to find here.\n'.repeat(40)]));
  await system.files(ALICE, { ...leaves, 'log/lines': '' });
  await system.letAliceRunScout();
  await system.grant('search-tree', { path: ['tree'], actions: ['search'] });
  await system.grant('write-log', { path: ['log'], actions: ['append'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(async () => {
  await evidence?.close();
  await system?.stop();
});
beforeEach(async () => {
  if (executors.running().length === 0) await executors.start(ONE_AT_ONCE);
}, DEADLINE_MS);

const search: ScriptedCall = { tool: 'files.search', arguments: { path: ['tree'], query: 'a needle' } };
const append: ScriptedCall = { tool: 'files.append', arguments: { path: ['log', 'lines'], content: 'a line\n' } };

/** A turn that does not end in the time of a test unless it is made to. */
const endless = (executionId: string) =>
  turnOf({ executionId, traceId: `trace-${executionId}`, calls: Array.from({ length: 500 }, () => search) });
const short = (executionId: string, calls: readonly ScriptedCall[] = [append]) =>
  turnOf({ executionId, traceId: `trace-${executionId}`, calls });

const stateOf = async (executionId: string, client = alice): Promise<string> => {
  const turn = await client.turns.get(executionId);
  if (turn.ok) return turn.value.summary.state;
  return turn.error.kind === 'refused' ? turn.error.error.code : turn.error.kind;
};
const until = (executionId: string, state: TurnState) =>
  waitFor(`${executionId} to be ${state}`, async () => (await stateOf(executionId)) === state, DEADLINE_MS);
const insideHandler = (executionId: string) =>
  waitFor(`${executionId} to be inside a handler`, async () => (await evidence.lastRecord(executionId))?.type === 'admitted', DEADLINE_MS);
const typesOf = async (executionId: string) =>
  (await evidence.records(executionId)).map((record) => (record.type === 'ended' ? `ended by ${record.by}` : record.type));
const listed = async (client: SharedOS, ...ids: readonly string[]) => {
  const turns = await client.turns.list({ limit: 500 });
  return turns.ok
    ? turns.value.filter(({ executionId }) => ids.includes(executionId)).map(({ executionId, state }) => [executionId, state])
    : turns.error;
};

const notFound = { ok: false, error: { kind: 'refused', error: { code: 'turn_not_found', retryable: false } } };
const cancelled = { status: 'cancelled', error: { code: 'turn_cancelled' } };

describe('cancelling a turn', () => {
  it('that runs stops it: its owner writes the end and answers', async () => {
    const submitted = await submit(alice, endless('running'));
    await insideHandler('running');
    expect(await alice.turns.cancel('running')).toEqual({ ok: true, value: 'cancelling' });
    expect(await answerOf(submitted)).toMatchObject(cancelled);
    // The search heard that it was to stop, and said so when the turn was over already.
    await waitFor('the search to answer', async () => (await evidence.lastRecord('running'))?.type === 'settled', DEADLINE_MS);
    expect((await typesOf('running')).slice(-3)).toEqual(['admitted', 'ended by owner', 'settled']);
    const records = await system.records('trace-running', (found) => found.some(({ reason }) => reason === 'operation_cancelled'));
    expect(records.slice(-3).map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'failed', 'turn_cancelled'],
      ['tool.invoked', 'failed', 'operation_cancelled'],
    ]);
    expect(await stateOf('running')).toBe('cancelled');
  });

  it('that waits ends it before anybody takes it: nothing of it ever runs', async () => {
    const first = await submit(alice, endless('in-front'));
    await until('in-front', 'running');
    const second = await submit(alice, short('behind'));
    expect(await stateOf('behind')).toBe('queued');
    expect(await alice.turns.cancel('behind')).toEqual({ ok: true, value: 'cancelled' });
    expect([await stateOf('in-front'), await stateOf('behind')]).toEqual(['running', 'cancelled']);
    expect(await alice.turns.cancel('in-front')).toEqual({ ok: true, value: 'cancelling' });
    expect(await Promise.all([answerOf(first), answerOf(second)])).toMatchObject([cancelled, cancelled]);
    expect(await typesOf('behind')).toEqual(['claimed', 'ended by cancel']);
    await waitFor('both to be acknowledged', async () => (await evidence.unacknowledged()) === 0, DEADLINE_MS);
    const records = await system.records('trace-behind', (found) => found.some(({ type }) => type === 'turn.ended'));
    expect(records.map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual([['turn.ended', 'failed', 'turn_cancelled']]);
  });

  it('that has ended changes nothing', async () => {
    const result = await answerOf(await submit(alice, short('over')));
    expect(await alice.turns.cancel('over')).toEqual({ ok: true, value: 'ended' });
    expect(await alice.turns.get('over')).toMatchObject({ ok: true, value: { summary: { state: 'succeeded' }, result } });
    expect((await typesOf('over')).at(-1)).toBe('ended by owner');
  });

  it('that has been cancelled already changes nothing either', async () => {
    expect([await alice.turns.cancel('running'), await alice.turns.cancel('behind')]).toEqual([
      { ok: true, value: 'ended' },
      { ok: true, value: 'ended' },
    ]);
  });

  it('of somebody else is refused as if there were none, whether it waits, runs or has ended', async () => {
    const first = await submit(alice, endless('hers'));
    await until('hers', 'running');
    const second = await submit(alice, short('hers-too'));
    for (const executionId of ['hers', 'hers-too', 'over', 'never-was']) {
      expect([executionId, await bob.turns.cancel(executionId)]).toMatchObject([executionId, notFound]);
      expect([executionId, await stateOf(executionId, bob)]).toEqual([executionId, 'turn_not_found']);
    }
    expect(await listed(bob, 'hers', 'hers-too', 'over')).toEqual([]);
    expect([await stateOf('hers'), await stateOf('hers-too')]).toEqual(['running', 'queued']);
    await alice.turns.cancel('hers');
    expect(await answerOf(first)).toMatchObject(cancelled);
    expect(await answerOf(second)).toMatchObject({ status: 'succeeded' });
  });

  it('whose owner is gone says so, and the turn is interrupted all the same', async () => {
    const submitted = await submit(alice, endless('orphaned'));
    await insideHandler('orphaned');
    await executors.ownerOf(await evidence.records('orphaned')).kill();
    await executors.start(ONE_AT_ONCE);
    const answer = await alice.turns.cancel('orphaned');
    // Who asks after the recovery is told of it.
    if (!answer.ok)
      expect(answer).toMatchObject({ error: { kind: 'refused', error: { code: 'turn_owner_unreachable', retryable: true } } });
    else expect(answer.value).toBe('ended');
    expect(await answerOf(submitted)).toMatchObject({ ...cancelled, events: [], error: { code: 'turn_cancelled', retryable: false } });
    expect((await typesOf('orphaned')).at(-1)).toBe('ended by recovery');
    expect(await alice.turns.cancel('orphaned')).toEqual({ ok: true, value: 'ended' });
  });
});

describe('the list of turns', () => {
  it('shows what waits, what runs and how each ended, newest first, and only one’s own', async () => {
    const first = await submit(alice, endless('listed-1'));
    await insideHandler('listed-1');
    const second = await submit(alice, short('listed-2', [search, append]));
    expect(await listed(alice, 'listed-1', 'listed-2', 'over', 'running')).toEqual([
      ['listed-2', 'queued'],
      ['listed-1', 'running'],
      ['over', 'succeeded'],
      ['running', 'cancelled'],
    ]);
    const queued = await alice.turns.list({ state: 'queued' });
    expect(queued).toMatchObject({ ok: true, value: [{ executionId: 'listed-2', agent: { kind: 'agent', agentId: 'scout' } }] });
    await alice.turns.cancel('listed-1');
    await Promise.all([answerOf(first), answerOf(second)]);
    expect(await listed(alice, 'listed-1', 'listed-2')).toEqual([
      ['listed-2', 'succeeded'],
      ['listed-1', 'cancelled'],
    ]);
    expect(await alice.turns.list({ limit: 1 })).toMatchObject({ ok: true, value: [{ executionId: 'listed-2' }] });
    expect(await bob.turns.list()).toEqual({ ok: true, value: [] });
  });
});
