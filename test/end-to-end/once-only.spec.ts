import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { laneConsumer, provision } from '@sharedos/bus';
import type { ScriptedCall } from '@sharedos/client';
import type { AuditEvent, ExecutionResult, LedgerRecord, TurnRequest } from '@sharedos/contracts';
import { foldExecution } from '@sharedos/kernel';
import { type ServiceProcess, waitFor } from '@sharedos/testing';
import { connect } from 'nats';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Executors, executorsOf, stopWhere } from '../support/executors.ts';
import { answerOf, submit, turnOf } from '../support/many-turns.ts';
import { ALICE, BOB, NAMESPACE, type TestSystem, startTestSystem } from '../support/test-system.ts';
import { type TurnEvidence, turnEvidence } from '../support/turn-evidence.ts';

/** Short, so that what a dead executor held is offered again soon. */
const TURN_LEASE_MS = 1_500;
const DEADLINE_MS = 30_000;
/** So many that none of the turns below comes to its end before it is met where it is to be. */
const CALLS = 400;
const SEED = 20_260_101;

let system: TestSystem;
let executors: Executors;
let evidence: TurnEvidence;
let alicesFolder: string;

beforeAll(async () => {
  system = await startTestSystem({ turnLeaseMs: TURN_LEASE_MS, replicas: { 'tool-executor': 2 } });
  executors = executorsOf(system.stack);
  evidence = await turnEvidence(system.stack);
  alicesFolder = await system.files(ALICE, { 'log/.keep': '' });
  const bobsFolder = await system.files(BOB, { 'log/shared-name': '' });
  expect(bobsFolder).not.toBe(alicesFolder);
  growTree(join(alicesFolder, 'tree'));
  await system.letAliceRunScout();
  await system.grant('write-log', { path: ['log'], actions: ['append'] });
  await system.grant('search-tree', { path: ['tree'], actions: ['search'] });
  await system.grant(
    'bob-runs-scout',
    { namespace: 'sharedos.execution', path: ['agent', 'scout'], actions: ['invoke'], scope: 'exact' },
    { from: BOB },
  );
  await system.grant('bob-writes-log', { path: ['log'], actions: ['append'] }, { from: BOB });
  await system.grant(
    'audit',
    { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' },
    { to: { kind: 'human', userId: 'auditor' } },
  );
});
afterAll(async () => {
  await evidence?.close();
  await system?.stop();
});
beforeEach(() => executors.upTo(2), DEADLINE_MS);

/** Enough files that one search of them takes a while, and one call can be met inside its handler. */
const growTree = (folder: string): void => {
  for (let branch = 0; branch < 20; branch += 1) {
    mkdirSync(join(folder, `branch-${branch}`), { recursive: true });
    for (let leaf = 0; leaf < 90; leaf += 1)
      writeFileSync(join(folder, `branch-${branch}`, `leaf-${leaf}`), 'Nothing to find here.\n'.repeat(40));
  }
};
const search: ScriptedCall = { tool: 'files.search', arguments: { path: ['tree'], query: 'a needle' } };

/** Each call appends a line of its own, all of one length, so that a line that came twice is seen. */
const lineOf = (call: number): string => `call-${call}`.padEnd(15, '.');
const LINE_BYTES = 16;
const logOf = (executionId: string): string => join(alicesFolder, 'log', executionId);
const appends = (executionId: string, count: number): ScriptedCall[] =>
  Array.from({ length: count }, (_, index) => ({
    tool: 'files.append',
    arguments: { path: ['log', executionId], content: `${lineOf(index + 1)}\n` },
  }));

/** A turn that writes its own log, which is made here and empty. */
const writing = (executionId: string, count: number, more: readonly ScriptedCall[] = []): TurnRequest => {
  writeFileSync(logOf(executionId), '');
  return turnOf({ executionId, traceId: `trace-${executionId}`, calls: [...appends(executionId, count), ...more] });
};
const linesWritten = (executionId: string): number => statSync(logOf(executionId)).size / LINE_BYTES;
const linesOf = (executionId: string): string[] =>
  readFileSync(logOf(executionId), 'utf8')
    .split('\n')
    .filter((line) => line !== '');

const endsOf = (records: readonly LedgerRecord[]) => records.filter((record) => record.type === 'ended');
const admittedOf = (records: readonly LedgerRecord[]) => records.flatMap((record) => (record.type === 'admitted' ? [record.callId] : []));
const settledOf = (records: readonly LedgerRecord[]) => records.flatMap((record) => (record.type === 'settled' ? [record.callId] : []));

/** The rule of the whole file: one terminal record, and no effect that was not admitted before it or that happened twice. */
const expectOnce = async (executionId: string): Promise<readonly LedgerRecord[]> => {
  const records = await evidence.records(executionId);
  const lines = linesOf(executionId);
  const admitted = admittedOf(records).map((callId) => lineOf(Number(callId.slice('call-'.length))));
  expect(endsOf(records)).toHaveLength(1);
  expect(records.at(-1)?.type).toBe('ended');
  expect(records.filter(({ type }) => type === 'claimed')).toHaveLength(1);
  expect(new Set(admitted).size).toBe(admitted.length);
  expect(lines).toEqual([...new Set(lines)]);
  expect(lines.filter((line) => !admitted.includes(line))).toEqual([]);
  // What is on record as settled did happen.
  const appended = records.flatMap((record) => (record.type === 'settled' && record.result.tool === 'files.append' ? [record.callId] : []));
  expect(appended.filter((callId) => !lines.includes(lineOf(Number(callId.slice('call-'.length)))))).toEqual([]);
  return records;
};

const claimedBy = async (executionId: string): Promise<ServiceProcess> => {
  const { records } = await waitFor(
    `${executionId} to be claimed`,
    async () => {
      const found = await evidence.records(executionId);
      return found.length > 0 && { records: found };
    },
    DEADLINE_MS,
  );
  return executors.ownerOf(records);
};

/** Where a call may be met: on record and nothing done, done and not on record, or both and the next one not begun. */
const MOMENTS = ['admitted', 'effective', 'settled'] as const;
type Moment = (typeof MOMENTS)[number] | 'claimed';

const momentOf = async (executionId: string, last?: LedgerRecord): Promise<Moment | undefined> => {
  const record = last ?? (await evidence.lastRecord(executionId));
  if (record?.type === 'settled') return 'settled';
  if (record?.type !== 'admitted') return undefined;
  return linesOf(executionId).includes(lineOf(Number(record.callId.slice('call-'.length)))) ? 'effective' : 'admitted';
};

/** Waits until the last thing on record is that a call may have its effect. */
const insideHandler = (executionId: string) =>
  waitFor(`${executionId} to be inside a handler`, async () => (await evidence.lastRecord(executionId))?.type === 'admitted', DEADLINE_MS);

const interrupted = { status: 'cancelled', events: [], error: { code: 'turn_cancelled', retryable: false } };

/** The audit records of a turn up to its end, in the turn's own order: into their stream they may come in another. */
const endedAudit = async (executionId: string): Promise<readonly AuditEvent[]> =>
  upToEnd(await system.records(`trace-${executionId}`, (records) => upToEnd(records).length > 0));

const upToEnd = (records: readonly AuditEvent[]): readonly AuditEvent[] => {
  const numbered = records.flatMap((event) =>
    typeof event.metadata?.['order'] === 'number' ? [{ event, order: event.metadata['order'] }] : [],
  );
  const inOrder = numbered.toSorted((a, b) => a.order - b.order);
  const end = inOrder.findIndex(({ event }) => event.type === 'turn.ended');
  const isWhole = inOrder.slice(0, end + 1).every(({ order }, index) => order === index);
  return isWhole ? inOrder.slice(0, end + 1).map(({ event }) => event) : [];
};

const run = async (request: TurnRequest): Promise<ExecutionResult> => answerOf(await submit(await system.client(ALICE), request));

describe('the same request sent again', () => {
  it('runs once, however often it is published, and each time is answered with the one result', async () => {
    const alice = await system.client(ALICE);
    const request = writing('thrice', 5);
    const together = await Promise.all([submit(alice, request), submit(alice, request), submit(alice, request)]);
    const answers = await Promise.all(together.map(answerOf));
    const later = await run(request);
    await waitFor('every request to be acknowledged', async () => (await evidence.unacknowledged()) === 0, DEADLINE_MS);

    const [first] = answers;
    expect(new Set(together.map(({ sequence }) => sequence)).size).toBe(3);
    expect(first).toMatchObject({ status: 'succeeded' });
    expect([...answers, later].filter((answer) => JSON.stringify(answer) !== JSON.stringify(first))).toEqual([]);
    const records = await expectOnce('thrice');
    expect([admittedOf(records).length, linesOf('thrice').length]).toEqual([5, 5]);
    expect(endsOf(records)).toMatchObject([{ result: first }]);
    const published = await evidence.answers('thrice');
    expect(published.length).toBeGreaterThanOrEqual(2);
    expect(published.filter((answer) => JSON.stringify(answer) !== JSON.stringify(first))).toEqual([]);
    expect((await endedAudit('thrice')).filter(({ type }) => type === 'turn.ended')).toHaveLength(1);
  });

  it('is refused when it says something else than before, and what stands stays', async () => {
    const alice = await system.client(ALICE);
    const request = writing('changed', 1);
    const stands = await run(request);
    const other = { ...request, state: { script: appends('changed', 2) as never } };
    const refused = await (await submit(alice, other)).result;
    expect(refused).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'replay_conflict', retryable: false } } });
    expect(linesOf('changed')).toHaveLength(1);
    await expectOnce('changed');
    expect(await run(request)).toEqual(stands);
    const audit = await system.records('trace-changed', (records) => records.filter(({ type }) => type === 'turn.ended').length >= 2);
    // The one record comes through the ledger and the other does not, so either may be first.
    expect(audit.flatMap(({ type, outcome, reason }) => (type === 'turn.ended' ? [`${outcome} ${reason ?? ''}`] : [])).sort()).toEqual([
      'denied replay_conflict',
      'succeeded ',
    ]);
  });

  it('is another request when another principal sends it', async () => {
    const mine = await run(writing('shared-name', 2));
    const his = turnOf({ from: BOB, executionId: 'shared-name', traceId: 'trace-his', calls: appends('shared-name', 1) });
    const answer = await answerOf(await submit(await system.client(BOB), his));
    expect(answer).toMatchObject({ status: 'succeeded', traceId: 'trace-his', output: { calls: [{ status: 'succeeded' }] } });
    expect(linesOf('shared-name')).toHaveLength(2);
    expect(endsOf(await expectOnce('shared-name'))).toMatchObject([{ result: mine }]);
    expect(endsOf(await evidence.records('shared-name', BOB))).toMatchObject([{ result: answer }]);
  });
});

describe('an executor killed with a turn in its hands', () => {
  it('inside a handler: the turn is interrupted, told so, and the other executor takes the next one', async () => {
    const alice = await system.client(ALICE);
    const submitted = await submit(alice, writing('in-handler', 3, [search, search, search]));
    await waitFor('the lines before the search', () => linesWritten('in-handler') === 3, DEADLINE_MS);
    const victim = await claimedBy('in-handler');
    await insideHandler('in-handler');
    await victim.kill();

    expect(await run(writing('next', 1))).toMatchObject({ status: 'succeeded' });
    expect(executors.running()).not.toContain(victim);
    expect(await answerOf(submitted)).toMatchObject(interrupted);
    const records = await evidence.records('in-handler');
    expect(endsOf(records)).toMatchObject([{ by: 'recovery', result: interrupted }]);
    expect([admittedOf(records), settledOf(records)]).toEqual([
      ['call-1', 'call-2', 'call-3', 'call-4'],
      ['call-1', 'call-2', 'call-3'],
    ]);
    expect(linesOf('in-handler')).toEqual([1, 2, 3].map(lineOf));
    const audit = await endedAudit('in-handler');
    expect(audit.slice(-2).map(({ type, outcome, reason, operationId }) => [type, outcome, reason, operationId])).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted', 'call-4'],
      ['turn.ended', 'failed', 'turn_cancelled', 'in-handler'],
    ]);
    // Asked again, it is answered from the record: an interrupted turn is never run.
    expect(await run(turnOf({ executionId: 'in-handler', calls: [] })).catch((error: Error) => error.message)).toContain('replay_conflict');
    expect(await alice.turns.get('in-handler')).toMatchObject({
      ok: true,
      value: { summary: { state: 'cancelled', code: 'turn_cancelled' }, result: interrupted },
    });
  });

  it(
    'at any moment: at most one effect of each admitted call, none without its admission, and one terminal record',
    { timeout: 120_000 },
    async () => {
      const alice = await system.client(ALICE);
      const random = seeded(SEED);
      const rounds: { readonly executionId: string; readonly answer: Promise<ExecutionResult>; readonly next: Promise<ExecutionResult> }[] =
        [];
      for (const [round, moment] of [...MOMENTS, ...MOMENTS, ...MOMENTS, 'claimed' as const].entries()) {
        await executors.upTo(2);
        const executionId = `killed-${round}`;
        const linesBefore = moment === 'claimed' ? 0 : Math.floor(random() * 20);
        const submitted = await submit(alice, writing(executionId, CALLS));
        const victim = await claimedBy(executionId);
        await waitFor(`${linesBefore} lines of ${executionId}`, () => linesWritten(executionId) >= linesBefore, DEADLINE_MS);
        if (moment !== 'claimed')
          await stopWhere(
            `${executionId} to be stopped with its last call ${moment}`,
            victim,
            async () => (await momentOf(executionId)) === moment,
            DEADLINE_MS,
          );
        await victim.kill();
        rounds.push({ executionId, answer: answerOf(submitted), next: run(writing(`after-${executionId}`, 1)) });
      }
      const met: Moment[] = [];
      for (const { executionId, answer, next } of rounds) {
        const [result, following] = await Promise.all([answer, next]);
        expect(following).toMatchObject({ status: 'succeeded' });
        expect(result).toMatchObject(interrupted);
        const records = await expectOnce(executionId);
        expect(endsOf(records)).toMatchObject([{ by: 'recovery', result }]);
        expect(await evidence.answers(executionId)).toEqual([result]);
        // One record that it had sent may have arrived after it was stopped. Nothing else has moved since the kill.
        const stood = await momentOf(executionId, records.at(-2));
        if (stood !== undefined) met.push(stood);

        const { openCalls } = foldExecution(records.slice(0, -1));
        expect(openCalls).toHaveLength(stood === 'admitted' || stood === 'effective' ? 1 : 0);
        const audit = await endedAudit(executionId);
        const told = (type: string, outcome: string, reason?: string) =>
          audit
            .filter((event) => event.type === type && event.outcome === outcome && event.reason === reason)
            .map(({ operationId }) => operationId);
        expect(told('tool.invoked', 'failed', 'operation_aborted')).toEqual(openCalls);
        expect(told('tool.invoked', 'succeeded')).toEqual(settledOf(records));
        expect(told('turn.ended', 'failed', 'turn_cancelled')).toEqual([executionId]);
      }
      expect(MOMENTS.filter((moment) => !met.includes(moment))).toEqual([]);
    },
  );

  it('after its terminal record and before its answer was stored: the record answers, and nothing runs again', async () => {
    const alice = await system.client(ALICE);
    await waitFor('earlier requests to be acknowledged', async () => (await evidence.unacknowledged()) === 0, DEADLINE_MS);
    const restore = await refuseAnswers();
    try {
      const submitted = await submit(alice, writing('unanswered', 4));
      const { ended } = await waitFor(
        'the terminal record',
        async () => {
          const [found] = endsOf(await evidence.records('unanswered'));
          return found !== undefined && { ended: found };
        },
        DEADLINE_MS,
      );
      await (await claimedBy('unanswered')).kill();
      expect([await evidence.answers('unanswered'), await evidence.unacknowledged()]).toEqual([[], 1]);
      await restore();
      await waitFor('the request to be acknowledged', async () => (await evidence.unacknowledged()) === 0, DEADLINE_MS);
      expect(ended).toMatchObject({ by: 'owner', result: { status: 'succeeded' } });
      expect(await evidence.answers('unanswered')).toEqual([ended.result]);
      expect(await answerOf(submitted)).toEqual(ended.result);
      expect(await expectOnce('unanswered')).toHaveLength(2 + 4 * 2 + 1);
      expect(linesOf('unanswered')).toHaveLength(4);
    } finally {
      await restore();
    }
  });
});

describe('an executor stopped past its claim and continued', () => {
  it('can admit nothing more, record nothing more and answer nothing more', { timeout: 60_000 }, async () => {
    const alice = await system.client(ALICE);
    // One in the middle of its calls, one inside a handler that goes on when the process does.
    const many = await submit(alice, writing('stopped-many', CALLS));
    const victim = await claimedBy('stopped-many');
    for (const other of executors.running()) if (other !== victim) await other.stop();
    const deep = await submit(
      alice,
      writing(
        'stopped-deep',
        1,
        Array.from({ length: 30 }, () => search),
      ),
    );
    await waitFor('a few lines', () => linesWritten('stopped-many') >= 3 && linesWritten('stopped-deep') === 1, DEADLINE_MS);
    await insideHandler('stopped-deep');
    // Its call is on record and has done nothing: the very effect that it goes on to have then.
    await stopWhere(
      'stopped-many to be stopped with a call admitted',
      victim,
      async () => (await momentOf('stopped-many')) === 'admitted',
      DEADLINE_MS,
    );
    const survivor = await executors.start();
    const answers = await Promise.all([answerOf(many), answerOf(deep)]);
    expect(answers).toMatchObject([interrupted, interrupted]);
    const before = await Promise.all(['stopped-many', 'stopped-deep'].map((id) => evidence.records(id)));
    expect(before.map((records) => endsOf(records).map(({ by }) => by))).toEqual([['recovery'], ['recovery']]);

    victim.resume();
    await survivor.stop();
    // It takes the next turn, so it is awake; and once it has stopped by itself it can do nothing more.
    const next = await run(writing('after-stop', 1));
    expect(next).toMatchObject({ status: 'succeeded' });
    expect(executors.ownerOf(await evidence.records('after-stop'))).toBe(victim);
    expect(await victim.stop()).toEqual({ code: 0, signal: null });

    expect(await Promise.all(['stopped-many', 'stopped-deep'].map((id) => evidence.records(id)))).toEqual(before);
    for (const executionId of ['stopped-many', 'stopped-deep']) {
      const records = await expectOnce(executionId);
      expect(await evidence.answers(executionId)).toEqual(endsOf(records).map(({ result }) => result));
    }
    expect(linesOf('stopped-deep')).toEqual([lineOf(1)]);
    expect(linesOf('stopped-many').length).toBeLessThan(CALLS);
    expect(await evidence.unacknowledged()).toBe(0);
  });

  it('goes on as if nothing had been when it answers before it is given up', async () => {
    const submitted = await submit(await system.client(ALICE), writing('paused', 200));
    const owner = await claimedBy('paused');
    await waitFor('a few lines', () => linesWritten('paused') >= 3, DEADLINE_MS);
    owner.pause();
    await waitFor('the request to be offered to the other executor', async () => (await redelivered()) > 0, DEADLINE_MS);
    owner.resume();
    expect(await answerOf(submitted)).toMatchObject({ status: 'succeeded' });
    expect(endsOf(await expectOnce('paused'))).toMatchObject([{ by: 'owner' }]);
    expect(linesOf('paused')).toHaveLength(200);
  });
});

describe('an executor asked to stop', () => {
  it('finishes what it has begun, takes nothing more, and leaves the rest to the others', async () => {
    const alice = await system.client(ALICE);
    const begun = await submit(alice, writing('begun', 40, [search]));
    const leaving = await claimedBy('begun');
    const exit = leaving.stop();
    // Until it has heard of it, what comes is rightly its own.
    await waitFor('the executor to know that it stops', () => leaving.output().includes('"stopping"'), DEADLINE_MS);
    const later = await Promise.all(['later-1', 'later-2', 'later-3'].map((id) => submit(alice, writing(id, 1))));
    expect(await exit).toEqual({ code: 0, signal: null });
    expect(await answerOf(begun)).toMatchObject({ status: 'succeeded' });
    expect(linesOf('begun')).toHaveLength(40);
    await expectOnce('begun');
    for (const turn of later) expect(await answerOf(turn)).toMatchObject({ status: 'succeeded' });
    for (const id of ['later-1', 'later-2', 'later-3']) expect(executors.running()).toContain(executors.ownerOf(await expectOnce(id)));
  });

  it('ends what it cannot finish within its grace itself, as cancelled', async () => {
    for (const other of executors.running()) await other.stop();
    const hasty = await executors.start({ SHAREDOS_GRACE_MS: '0' });
    const submitted = await submit(await system.client(ALICE), writing('unfinished', 2, [search, search, search, search]));
    await waitFor('the lines before the search', () => linesWritten('unfinished') === 2, DEADLINE_MS);
    await insideHandler('unfinished');
    expect(await hasty.stop()).toEqual({ code: 0, signal: null });
    expect(await answerOf(submitted)).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled', retryable: false } });
    expect(endsOf(await evidence.records('unfinished'))).toMatchObject([{ by: 'owner' }]);
    const audit = await endedAudit('unfinished');
    expect(audit.slice(-2).map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'failed', 'turn_cancelled'],
    ]);
    expect(await evidence.unacknowledged()).toBe(0);
  });
});

/** A small generator of numbers from 0 to 1, the same for the same seed. */
const seeded = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

const asProvisioner = async <T>(work: (connection: Awaited<ReturnType<typeof connect>>) => Promise<T>): Promise<T> => {
  const { user, password, inboxPrefix } = system.stack.credentials.provisioner;
  const connection = await connect({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
};

/** Makes the stream of answers take none, as a full disk would. @returns What makes it take them again. */
const refuseAnswers = async (): Promise<() => Promise<void>> => {
  await asProvisioner(async (connection) => {
    const manager = await connection.jetstreamManager();
    const { config } = await manager.streams.info('TURN_EVENTS');
    await manager.streams.update('TURN_EVENTS', { ...config, max_msg_size: 1 });
  });
  const { user, password } = system.stack.credentials.provisioner;
  return async () => {
    const restored = await provision({ servers: system.stack.natsUrl, user, pass: password });
    expect(restored).toEqual({ ok: true, value: undefined });
  };
};

/** Requests that are with an executor for the second time or more. */
const redelivered = (): Promise<number> =>
  asProvisioner(
    async (connection) =>
      (await (await connection.jetstreamManager()).consumers.info('TURNS', laneConsumer({ namespaceId: NAMESPACE, verb: 'turn.request' })))
        .num_redelivered,
  );
