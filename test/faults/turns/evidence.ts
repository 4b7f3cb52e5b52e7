import { setTimeout as pause } from 'node:timers/promises';
import { type Bus, type StoredMessage, readSubject } from '@sharedos/bus';
import {
  type AuditEvent,
  AuditRecordMessage,
  type ExecutionResult,
  type LedgerRecord,
  PAYLOAD_BYTES_MAX,
  SCHEMA_HEADER,
  TurnResult,
  type UseClaim,
  decodeBody,
  parseSubject,
  principalSubject,
} from '@sharedos/contracts';
import { decodeLedgerRecord, jetStreamLedger } from '@sharedos/ledger';
import { type LocalStack, waitFor } from '@sharedos/testing';
import { redisUsageStore } from '@sharedos/usage';
import { connectAs, readStream } from '../../support/evidence.ts';
import { NAMESPACE } from '../../support/test-system.ts';
import type { PlannedTurn } from './schedule.ts';
import { REQUESTERS } from './world.ts';

/** All that stands in the streams when the storm is over, past every service. */
export interface Evidence {
  /** The records of every operation, by the id that its requester gave it. */
  readonly operations: ReadonlyMap<string, readonly LedgerRecord[]>;
  readonly uses: readonly UseClaim[];
  /** Every audit record as often as it is in the stream. */
  readonly audit: readonly AuditEvent[];
  readonly answers: ReadonlyMap<string, readonly ExecutionResult[]>;
  /** Messages in the inbox, by id, as often as they are there. */
  readonly inbox: readonly string[];
  /** Uses that the counters say are handed out, by grant; `undefined` when they did not answer. */
  readonly counted: ReadonlyMap<string, number> | undefined;
  readonly effects: readonly string[];
}

const READ_MS = 5_000;
const LOOK_AGAIN_MS = 1_000;
const SETTLED_DEADLINE_MS = 240_000;
const COUNT_DEADLINE_MS = 20_000;

/** Waits until nothing is queued, every operation is over, and every record of the ledger was published. */
export const settled = async (stack: LocalStack, say: (howFar: string) => void): Promise<void> => {
  const executor = await connectAs(stack, 'tool-executor');
  const projector = await connectAs(stack, 'audit-projector');
  try {
    await waitFor(
      'every turn to be over',
      async () => {
        const queued = await queuedNow(executor);
        say(`${queued} requests are not acknowledged yet`);
        return queued === 0 || pause(LOOK_AGAIN_MS, false);
      },
      SETTLED_DEADLINE_MS,
    );
    await waitFor(
      'every record to be published',
      async () => {
        const missing = await unpublished(projector);
        say(`${missing.length} records are not published yet`);
        return missing.length === 0 || pause(LOOK_AGAIN_MS, false);
      },
      SETTLED_DEADLINE_MS,
    );
  } finally {
    await Promise.all([executor.close(), projector.close()]);
  }
};

/** Requests that nobody acknowledged, subject by subject: of a work queue there can be no second reader. */
const queuedNow = async (executor: Bus): Promise<number> => {
  let queued = 0;
  for (const requester of Object.values(REQUESTERS)) {
    const read = await readSubject(executor, 'TURNS', principalSubject('turn.request', NAMESPACE, requester), { timeoutMs: READ_MS });
    queued += read.ok ? read.value.length : Infinity;
  }
  return queued;
};

/** Records of the ledger that are not in the audit yet. */
const unpublished = async (projector: Bus): Promise<readonly string[]> => {
  const published = new Set((await auditOf(projector)).map(({ id }) => id));
  const carried = [...(await operationsOf(projector)).values()].flat().flatMap((record) => ('audit' in record ? record.audit : []));
  return carried.map(({ id }) => id).filter((id) => !published.has(id));
};

export const gather = async (
  stack: LocalStack,
  turns: readonly PlannedTurn[],
  bounds: ReadonlyMap<string, number>,
  effects: readonly string[],
): Promise<Evidence> => {
  const [executor, projector, router] = await Promise.all([
    connectAs(stack, 'tool-executor'),
    connectAs(stack, 'audit-projector'),
    connectAs(stack, 'messaging-router'),
  ]);
  try {
    const uses = await jetStreamLedger(executor).uses();
    if (!uses.ok) throw new Error(`the uses could not be read: ${uses.error.reason}`);
    const answers = await answersTo(executor, turns);
    const inbox = (await readStream(router, 'MESSAGES')).map(({ data }) => (JSON.parse(Buffer.from(data).toString()) as { id: string }).id);
    return {
      operations: await operationsOf(projector),
      uses: uses.value.map(({ use }) => use),
      audit: await auditOf(projector),
      answers,
      inbox,
      counted: await countersOf(stack, bounds),
      effects,
    };
  } finally {
    await Promise.all([executor.close(), projector.close(), router.close()]);
  }
};

/** Every result that was ever told of a turn, turn by turn: nobody but its requester may follow them all. */
const answersTo = async (executor: Bus, turns: readonly PlannedTurn[]): Promise<ReadonlyMap<string, readonly ExecutionResult[]>> => {
  const answers = new Map<string, readonly ExecutionResult[]>();
  for (const { executionId, from } of turns) {
    const natsSubject = principalSubject('turn.result', NAMESPACE, REQUESTERS[from], executionId);
    const told = await readSubject(executor, 'TURN_EVENTS', natsSubject, { timeoutMs: READ_MS });
    if (!told.ok) throw new Error(`the answers of ${executionId} could not be read: ${told.error.reason}`);
    answers.set(
      executionId,
      told.value.map((message) => bodyOf(TurnResult, message).result),
    );
  }
  return answers;
};

const operationsOf = async (bus: Bus): Promise<Map<string, LedgerRecord[]>> => {
  const bySubject = new Map<string, LedgerRecord[]>();
  for (const message of await readStream(bus, 'LEDGER')) {
    if (parseSubject(message.subject)?.rest[0] === 'use') continue;
    const record = decodeLedgerRecord({ schema: message.header(SCHEMA_HEADER) ?? '', data: message.data });
    if (!record.ok) throw new Error(`record ${message.sequence} of the ledger cannot be read: ${record.error}`);
    bySubject.set(message.subject, [...(bySubject.get(message.subject) ?? []), record.value]);
  }
  return new Map([...bySubject.values()].map((records) => [idOf(records), records]));
};

const idOf = ([first]: readonly LedgerRecord[]): string =>
  first?.type === 'claimed' ? first.operationId : 'an operation that nobody claimed';

const auditOf = async (bus: Bus): Promise<readonly AuditEvent[]> =>
  (await readStream(bus, 'AUDIT')).map((message) => bodyOf(AuditRecordMessage, message));

const countersOf = async (stack: LocalStack, bounds: ReadonlyMap<string, number>): Promise<Evidence['counted']> => {
  const unread = async () => ({ ok: false, error: { kind: 'unavailable', reason: 'the services rebuild them' } }) as const;
  const store = redisUsageStore({ url: stack.redisUrl, spentUses: unread });
  try {
    if (!(await store.whenOpen(COUNT_DEADLINE_MS))) return undefined;
    const counted = new Map<string, number>();
    for (const [grantId, max] of bounds) {
      const counts = await store.count([{ namespaceId: NAMESPACE, grantId, max }]);
      if (!counts.ok) return undefined;
      counted.set(grantId, counts.value[0] ?? 0);
    }
    return counted;
  } finally {
    await store.close();
  }
};

const bodyOf = <T>(schema: Parameters<typeof decodeBody<T>>[0], { sequence, data }: StoredMessage): T => {
  const body = decodeBody(schema, data, PAYLOAD_BYTES_MAX);
  if (!body.ok) throw new Error(`message ${sequence} cannot be read: ${body.error.message}`);
  return body.value;
};
