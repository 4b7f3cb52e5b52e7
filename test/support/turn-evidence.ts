import { type Bus, lastOnSubject, readSubject } from '@sharedos/bus';
import {
  type Address,
  type ExecutionResult,
  type LedgerRecord,
  PAYLOAD_BYTES_MAX,
  SCHEMA_HEADER,
  TurnResult,
  decodeBody,
  principalSubject,
} from '@sharedos/contracts';
import { decodeLedgerRecord, jetStreamLedger, operationSubject } from '@sharedos/ledger';
import { type LocalStack, waitFor } from '@sharedos/testing';
import { connectAs } from './evidence.ts';
import { ALICE, NAMESPACE } from './test-system.ts';

/** What stands of turns in the streams themselves, past every service. Turns are alice's, or as said. */
export interface TurnEvidence {
  /** The records of one turn, in the order they were written; none for one that nobody took. */
  records(executionId: string, requester?: Address): Promise<readonly LedgerRecord[]>;
  /** The last of them alone, which is quicker to ask for. */
  lastRecord(executionId: string, requester?: Address): Promise<LedgerRecord | undefined>;
  /** The results that were ever published for it. */
  answers(executionId: string, requester?: Address): Promise<readonly ExecutionResult[]>;
  /** Requests of hers that nobody has acknowledged. */
  unacknowledged(requester?: Address): Promise<number>;
  close(): Promise<void>;
}

const READ_MS = 1_000;
const READ_DEADLINE_MS = 20_000;

export const turnEvidence = async (stack: LocalStack): Promise<TurnEvidence> => {
  const bus: Bus = await connectAs(stack, 'tool-executor');
  const ledger = jetStreamLedger(bus);
  const read = async (stream: string, natsSubject: string) => {
    const { found } = await waitFor(
      `${natsSubject} to be read`,
      async () => {
        const messages = await readSubject(bus, stream, natsSubject, { timeoutMs: READ_MS });
        return messages.ok && { found: messages.value };
      },
      READ_DEADLINE_MS,
    );
    return found;
  };
  const keyOf = (executionId: string, requester: Address) =>
    ({ namespaceId: NAMESPACE, kind: 'execution', requester, id: executionId }) as const;
  return {
    lastRecord: async (executionId, requester = ALICE) => {
      const { last } = await waitFor(
        `the last record of ${executionId}`,
        async () => {
          const found = await lastOnSubject(bus, 'LEDGER', operationSubject(keyOf(executionId, requester)), { timeoutMs: READ_MS });
          return found.ok && { last: found.value };
        },
        READ_DEADLINE_MS,
      );
      if (last === undefined) return undefined;
      const record = decodeLedgerRecord({ schema: last.header(SCHEMA_HEADER) ?? '', data: last.data });
      if (!record.ok) throw new Error(`the last record of ${executionId} cannot be read: ${record.error}`);
      return record.value;
    },
    records: async (executionId, requester = ALICE) => {
      const key = keyOf(executionId, requester);
      const { records } = await waitFor(
        `the records of ${executionId}`,
        async () => {
          const history = await ledger.read(key);
          return history.ok && { records: history.value?.records ?? [] };
        },
        READ_DEADLINE_MS,
      );
      return records;
    },
    answers: async (executionId, requester = ALICE) => {
      const messages = await read('TURN_EVENTS', principalSubject('turn.result', NAMESPACE, requester, executionId));
      return messages.map(({ data }) => {
        const body = decodeBody(TurnResult, data, PAYLOAD_BYTES_MAX);
        if (!body.ok) throw new Error(`an answer of ${executionId} is no result: ${body.error.message}`);
        return body.value.result;
      });
    },
    unacknowledged: async (requester = ALICE) => (await read('TURNS', principalSubject('turn.request', NAMESPACE, requester))).length,
    close: () => bus.close(),
  };
};
