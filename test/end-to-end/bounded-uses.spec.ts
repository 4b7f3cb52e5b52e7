import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bus } from '@sharedos/bus';
import type { AuditEvent, ExecutionResult } from '@sharedos/contracts';
import { type SpanReceiver, startSpanReceiver } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectAs, readOperations, readUses } from '../support/evidence.ts';
import { callsOf, countAnswers, runAll, turnOf } from '../support/many-turns.ts';
import { answersByReplica, tracedTo } from '../support/replicas.ts';
import { ALICE, AUDITOR, type TestSystem, startTestSystem } from '../support/test-system.ts';

const CALLS = 64;
const MAX_USES = 5;
const SPANS_DEADLINE_MS = 60_000;

// Several processes share this machine's cores with whatever else runs: nothing here measures time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

let system: TestSystem;
let spans: SpanReceiver;
let folder: string;
let buses: Bus[];
let [asAuthorizer, asProjector]: Bus[] = [];

beforeAll(async () => {
  spans = await startSpanReceiver();
  system = await startTestSystem({ replicas: { authorizer: 2, 'tool-executor': 2 }, env: () => tracedTo(spans) });
  buses = await Promise.all([connectAs(system.stack, 'authorizer'), connectAs(system.stack, 'audit-projector')]);
  [asAuthorizer, asProjector] = buses;
  folder = await system.files(ALICE, { 'one/log.txt': '', 'eight/log.txt': '', 'hidden/log.txt': '', 'free/log.txt': '' });
  await system.letAliceRunScout();
  // An append elsewhere that is not bounded keeps the tool in the catalogue when the bounded grant is spent.
  await system.grant('free', { path: ['free'], actions: ['append'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(async () => {
  await Promise.all((buses ?? []).map((bus) => bus.close()));
  await system?.stop();
  await spans?.stop();
});

const appendTo = (path: readonly string[], line: string) => ({
  tool: 'files.append',
  arguments: { path: [...path], content: `${line}\n` },
});

const linesOf = async (...path: readonly string[]): Promise<readonly string[]> =>
  (await readFile(join(folder, ...path), 'utf8')).split('\n').filter((line) => line !== '');

/** Exactly the uses there were, each once and each for an operation of its own. */
const expectUses = async (grantId: string, count: number): Promise<void> => {
  const uses = await readUses(asAuthorizer as Bus, grantId);
  expect(uses.map(({ ordinal }) => ordinal)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  expect(new Set(uses.map(({ operation }) => operation)).size).toBe(count);
};

const allCalls = (results: readonly ExecutionResult[]) => results.flatMap(callsOf);

describe('a grant of five uses over two authorizers and two executors', () => {
  it('has exactly five effects among 64 turns at once, and refuses the other 59 as grant_exhausted', async () => {
    await system.grant('five-of-one', { path: ['one'], actions: ['append'] }, { constraints: { maxUses: MAX_USES } });
    const requests = Array.from({ length: CALLS }, (_, index) =>
      turnOf({ executionId: `one-${index}`, calls: [appendTo(['one', 'log.txt'], `one-${index}`)] }),
    );
    const results = await runAll(await system.client(ALICE), requests);

    expect(countAnswers(allCalls(results))).toEqual({ succeeded: MAX_USES, grant_exhausted: CALLS - MAX_USES });
    const ran = results.filter((result) => callsOf(result)[0]?.status === 'succeeded').map(({ executionId }) => executionId);
    expect([...(await linesOf('one', 'log.txt'))].sort()).toEqual([...ran].sort());
    await expectUses('five-of-one', MAX_USES);
  });

  it('has exactly five effects among 8 turns at once of 8 calls each', async () => {
    await system.grant('five-of-eight', { path: ['eight'], actions: ['append'] }, { constraints: { maxUses: MAX_USES } });
    const requests = Array.from({ length: 8 }, (_, turn) =>
      turnOf({
        executionId: `eight-${turn}`,
        calls: Array.from({ length: 8 }, (_call, call) => appendTo(['eight', 'log.txt'], `eight-${turn}-${call}`)),
      }),
    );
    const results = await runAll(await system.client(ALICE), requests);

    expect(countAnswers(allCalls(results))).toEqual({ succeeded: MAX_USES, grant_exhausted: CALLS - MAX_USES });
    const ran = results.flatMap((result) =>
      callsOf(result).flatMap(({ status }, call) => (status === 'succeeded' ? [`${result.executionId}-${call}`] : [])),
    );
    expect([...(await linesOf('eight', 'log.txt'))].sort()).toEqual([...ran].sort());
    await expectUses('five-of-eight', MAX_USES);
  });

  it('hides the tool from an agent that holds nothing else, and audit says why', async () => {
    const keeper = { kind: 'agent', agentId: 'keeper' } as const;
    await system.grant(
      'run-keeper',
      { namespace: 'sharedos.execution', path: ['agent', 'keeper'], actions: ['invoke'], scope: 'exact' },
      { to: keeper },
    );
    await system.grant('five-hidden', { path: ['hidden'], actions: ['append'] }, { to: keeper, constraints: { maxUses: MAX_USES } });
    const requests = Array.from({ length: 8 }, (_, turn) =>
      turnOf({
        agent: keeper,
        traceId: 'hidden',
        executionId: `hidden-${turn}`,
        calls: Array.from({ length: 8 }, (_call, call) => appendTo(['hidden', 'log.txt'], `hidden-${turn}-${call}`)),
      }),
    );
    const results = await runAll(await system.client(ALICE), requests);

    // Between the discovery and the exact check of one call the last use may go to another: then the call hears the cause itself.
    const { succeeded, tool_unavailable: hidden = 0, grant_exhausted: raced = 0, ...others } = countAnswers(allCalls(results));
    expect(succeeded).toBe(MAX_USES);
    expect(hidden + raced).toBe(CALLS - MAX_USES);
    expect(others).toEqual({});
    expect(await linesOf('hidden', 'log.txt')).toHaveLength(MAX_USES);
    await expectUses('five-hidden', MAX_USES);

    const records = await system.records('hidden', (found) => found.filter(({ type }) => type === 'turn.ended').length === requests.length);
    const causes = records.filter(({ type, reason }) => type === 'tool.invoked' && reason === 'tool_unavailable').map(causeOf);
    expect(causes).toHaveLength(hidden);
    expect(causes.filter((cause) => cause === 'grant_exhausted').length).toBeGreaterThan(0);
    // A turn that was listed after the last use was never offered the tool at all.
    expect(new Set(causes)).toSatisfy((found: ReadonlySet<unknown>) =>
      [...found].every((cause) => cause === 'grant_exhausted' || cause === 'not_offered'),
    );
  });

  it('was decided by both authorizers and run by both executors', async () => {
    const answered = await spans.waitFor((all) => Object.keys(answersByReplica(all, 'authority.decide')).length === 2, SPANS_DEADLINE_MS);
    const decided = Object.values(answersByReplica(answered, 'authority.decide'));
    expect(Math.min(...decided)).toBeGreaterThan(10);
    const owners = (await readOperations(asProjector as Bus)).flatMap((records) =>
      records.flatMap((record) => (record.type === 'claimed' ? [record.ownerId] : [])),
    );
    expect(new Set(owners).size).toBe(2);
  });
});

describe('a right to run an agent that is bounded to one use', () => {
  it('admits exactly one of 16 turns at once, and refuses the other 15 as grant_exhausted', async () => {
    const once = { kind: 'agent', agentId: 'once' } as const;
    await system.grant(
      'run-once',
      { namespace: 'sharedos.execution', path: ['agent', 'once'], actions: ['invoke'], scope: 'exact' },
      { to: once, constraints: { maxUses: 1 } },
    );
    await system.grant('once-free', { path: ['free'], actions: ['append'] }, { to: once });
    const requests = Array.from({ length: 16 }, (_, turn) =>
      turnOf({ agent: once, traceId: 'once', executionId: `once-${turn}`, calls: [appendTo(['free', 'log.txt'], `once-${turn}`)] }),
    );
    const results = await runAll(await system.client(ALICE), requests);

    expect(countAnswers(results.map(answerOfTurn))).toEqual({ succeeded: 1, grant_exhausted: 15 });
    expect(await linesOf('free', 'log.txt')).toEqual(
      results.filter(({ status }) => status === 'succeeded').map(({ executionId }) => executionId),
    );
    await expectUses('run-once', 1);
    const records = await system.records('once', (found) => found.filter(({ type }) => type === 'turn.ended').length === requests.length);
    expect(
      records.filter(({ type, outcome, reason }) => type === 'turn.ended' && outcome === 'denied' && reason === 'grant_exhausted'),
    ).toHaveLength(15);
  });

  it('stays spent for every turn after it', async () => {
    const again = turnOf({ agent: { kind: 'agent', agentId: 'once' }, calls: [appendTo(['free', 'log.txt'], 'again')] });
    const [result] = await runAll(await system.client(ALICE), [again]);
    expect(result).toMatchObject({ status: 'denied', error: { code: 'grant_exhausted' } });
    expect(await linesOf('free', 'log.txt')).not.toContain('again');
  });
});

const causeOf = ({ metadata }: AuditEvent): unknown => metadata?.['cause'];

const answerOfTurn = (result: ExecutionResult) => ({
  tool: 'turn',
  status: result.status as 'succeeded' | 'denied' | 'failed',
  ...('error' in result && result.error !== undefined ? { code: result.error.code } : {}),
});
