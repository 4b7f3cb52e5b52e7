import { type ExecutionResult, type LedgerRecord, RESULT_BYTES_MAX } from '@sharedos/contracts';
import { foldExecution } from '@sharedos/kernel';
import type { MemoryRecordLog } from '@sharedos/ledger';
import { afterEach, describe, expect, it } from 'vitest';
import { TURN_RESULTS_BYTES_MAX } from '../../services/tool-executor/src/mediated-calls.ts';
import { type TurnInProcess, toolThat, turnInProcess } from '../support/turn-in-process.ts';

let world: TurnInProcess | undefined;
afterEach(() => world?.close());

const started = async (options: Parameters<typeof turnInProcess>[0]): Promise<TurnInProcess> => {
  world = await turnInProcess(options);
  await world.begin();
  return world;
};

const cancelled = (turn: TurnInProcess): ExecutionResult => ({
  version: '1',
  status: 'cancelled',
  executionId: 'any',
  traceId: turn.context.traceId,
  events: [],
  startedAt: turn.context.now,
  completedAt: turn.context.now,
});

const recordTypeOf = (data: Uint8Array): string => (JSON.parse(Buffer.from(data).toString('utf8')) as { type: string }).type;

/** Calls `meanwhile` when a record of a type is on its way: after the turn sent it and before it is stored. */
const whileWriting =
  (type: string, meanwhile: () => void) =>
  (log: MemoryRecordLog): MemoryRecordLog => ({
    ...log,
    write: async (write) => {
      if (!write.natsSubject.includes('.use.') && recordTypeOf(write.data) === type) meanwhile();
      return log.write(write);
    },
  });

/** Answers no write of a type, and stores none. */
const unanswered =
  (type: string) =>
  (log: MemoryRecordLog): MemoryRecordLog => ({
    ...log,
    write: async (write) =>
      write.natsSubject.includes('.use.') || recordTypeOf(write.data) !== type
        ? log.write(write)
        : { kind: 'unknown', reason: 'no answer' },
  });

const invokedOf = (records: readonly LedgerRecord[], callId: string) =>
  records
    .flatMap((record) => ('audit' in record ? record.audit : []))
    .filter(({ type, operationId }) => type === 'tool.invoked' && operationId === callId)
    .map(({ outcome, reason }) => [outcome, reason]);

describe('a turn that is stopped while a call is being admitted', () => {
  const stoppedWhileAdmitting = async () => {
    const effects: string[] = [];
    const stop = new AbortController();
    const ended = Promise.withResolvers<void>();
    const turn: TurnInProcess = await started({
      tools: [toolThat('files.append', (call) => void effects.push(call.id))],
      log: whileWriting('admitted', () => {
        stop.abort();
        // What the envelope does at the hard signal: it waits for nobody and writes the end.
        void turn.turn.end(turn.context, cancelled(turn), { endedBy: 'envelope' }).then(ended.resolve, ended.reject);
      }),
    });
    const call = turn.turn.invokeTool(turn.context, turn.call('one', 'files.append'), stop.signal);
    await expect(call).rejects.toThrow();
    await ended.promise;
    return { effects, records: await turn.records() };
  };

  it('does not enter the tool any more', async () => {
    expect((await stoppedWhileAdmitting()).effects).toEqual([]);
  });

  it('says of the admitted call in its end that its effect is unknown', async () => {
    const { records } = await stoppedWhileAdmitting();
    expect(records.map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'ended']);
    expect(invokedOf(records, 'one')).toEqual([['failed', 'operation_aborted']]);
  });
});

describe('the results of one turn', () => {
  it('are bounded together, so that its records can be read by whoever must end it', { timeout: 60_000 }, async () => {
    const large = 'x'.repeat(RESULT_BYTES_MAX - 1_024);
    const turn = await started({ tools: [toolThat('files.append', () => large)] });
    const fitting = Math.floor(TURN_RESULTS_BYTES_MAX / (RESULT_BYTES_MAX - 1_024));
    const ask = (id: string) => turn.turn.invokeTool(turn.context, turn.call(id, 'files.append'), new AbortController().signal);
    for (let index = 0; index < fitting; index += 1) expect((await ask(`fits-${index}`)).status).toBe('succeeded');
    expect(await ask('too-much')).toMatchObject({ status: 'failed', error: { code: 'invalid_tool_result' } });
    expect(invokedOf(await turn.records(), 'too-much')).toEqual([['failed', 'invalid_tool_result']]);
  });
});

describe('a bounded use', () => {
  it('is spent under the name of its operation alone, however many calls race for it', async () => {
    const effects: string[] = [];
    const turn = await started({ tools: [toolThat('files.append', (call) => void effects.push(call.id))], constraints: { maxUses: 3 } });
    const calls = Array.from({ length: 20 }, (_, index) =>
      turn.turn.invokeTool(turn.context, turn.call(`c${index}`, 'files.append'), new AbortController().signal),
    );
    const answers = await Promise.all(calls);
    expect(answers.filter(({ status }) => status === 'succeeded')).toHaveLength(3);
    expect(effects).toHaveLength(3);
    const uses = await turn.ledger.uses();
    expect(uses.ok && uses.value.map(({ use }) => use.ordinal).toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
  });
});

describe('an admission whose fate is unknown', () => {
  it('is taken for admitted: the tool is not entered, and the end speaks for the call', async () => {
    const effects: string[] = [];
    const turn = await started({
      tools: [toolThat('files.append', (call) => void effects.push(call.id))],
      log: unanswered('admitted'),
    });
    await expect(turn.turn.invokeTool(turn.context, turn.call('one', 'files.append'), new AbortController().signal)).rejects.toThrow();
    await turn.turn.end(turn.context, cancelled(turn), { endedBy: 'envelope' });
    expect(effects).toEqual([]);
    expect(invokedOf(await turn.records(), 'one')).toEqual([['failed', 'operation_aborted']]);
  });

  it('loses no decision: what the call was allowed is recorded with the end', async () => {
    const turn = await started({
      tools: [toolThat('files.append', () => undefined)],
      log: unanswered('admitted'),
    });
    await expect(turn.turn.invokeTool(turn.context, turn.call('one', 'files.append'), new AbortController().signal)).rejects.toThrow();
    await turn.turn.end(turn.context, cancelled(turn), { endedBy: 'envelope' });
    const decisions = (await turn.audit()).filter(({ type, operationId }) => type === 'authorization.checked' && operationId === 'one');
    expect(decisions.map(({ outcome }) => outcome)).toEqual(['allowed']);
  });
});

describe('a refusal that could not be recorded at once', () => {
  it('is recorded with the end, of the envelope and of the kernel alike', async () => {
    let away = false;
    const turn = await started({
      tools: [toolThat('files.append', () => undefined)],
      log: (log) => ({ ...log, write: async (write) => (away ? { kind: 'unknown', reason: 'no answer' } : log.write(write)) }),
    });
    away = true;
    await turn.turn.recordRefusal(turn.context, turn.call('one', 'files.guessed'), { code: 'tool_unavailable', cause: 'not_offered' });
    const elsewhere = { ...turn.call('two', 'files.append'), traceId: 'another' };
    await expect(turn.turn.invokeTool(turn.context, elsewhere, new AbortController().signal)).rejects.toThrow();
    away = false;
    await turn.turn.end(turn.context, cancelled(turn), { endedBy: 'envelope' });
    const records = await turn.records();
    expect(invokedOf(records, 'one')).toEqual([['denied', 'tool_unavailable']]);
    expect(invokedOf(records, 'two')).toEqual([['denied', 'trace_mismatch']]);
  });
});

describe('a call id that was used before', () => {
  it('names no other call, also when the first was refused by the kernel', async () => {
    const effects: string[] = [];
    const turn = await started({ tools: [toolThat('files.append', (call) => void effects.push(call.id))] });
    const signal = new AbortController().signal;
    const ask = (tool: string) => turn.turn.invokeTool(turn.context, turn.call('one', tool), signal);
    expect(await ask('files.unknown')).toMatchObject({ status: 'denied', error: { code: 'tool_unavailable' } });
    expect(await ask('files.append')).toMatchObject({ status: 'denied', error: { code: 'replay_conflict' } });
    expect(effects).toEqual([]);
  });

  it('is still free after a refusal of the envelope, and its call is then left open like any other', async () => {
    const entered = Promise.withResolvers<void>();
    const turn = await started({
      tools: [
        toolThat('files.append', () => {
          entered.resolve();
          return new Promise(() => undefined);
        }),
      ],
    });
    await turn.turn.recordRefusal(turn.context, turn.call('one', 'files.guessed'), { code: 'tool_unavailable', cause: 'not_offered' });
    void turn.turn.invokeTool(turn.context, turn.call('one', 'files.append'), new AbortController().signal);
    await entered.promise;
    expect(foldExecution(await turn.records()).openCalls).toEqual(['one']);
  });

  it('is not settled by a refusal of the envelope while its own call is still open', async () => {
    const entered = Promise.withResolvers<void>();
    const leave = Promise.withResolvers<void>();
    const turn = await started({
      tools: [
        toolThat('files.append', async () => {
          entered.resolve();
          await leave.promise;
        }),
      ],
    });
    const open = turn.turn.invokeTool(turn.context, turn.call('one', 'files.append'), new AbortController().signal);
    await entered.promise;
    await turn.turn.recordRefusal(turn.context, turn.call('one', 'files.guessed'), { code: 'tool_unavailable', cause: 'not_offered' });
    expect(foldExecution(await turn.records()).openCalls).toEqual(['one']);
    leave.resolve();
    expect(await open).toMatchObject({ status: 'succeeded' });
  });
});
