import { type Bus, type StoredMessage, connectBus, followStream, streamHead } from '@sharedos/bus';
import {
  type AuditEvent,
  AuditRecordMessage,
  type LedgerRecord,
  PAYLOAD_BYTES_MAX,
  SCHEMA_HEADER,
  type ServiceName,
  type StreamName,
  type UseClaim,
  decodeBody,
  parseSubject,
} from '@sharedos/contracts';
import { decodeLedgerRecord, jetStreamLedger } from '@sharedos/ledger';
import { type LocalStack, waitFor } from '@sharedos/testing';

const READ_DEADLINE_MS = 30_000;

/** Connects as a service would. What is read below is read from the streams themselves, past every service. */
export const connectAs = (stack: LocalStack, service: ServiceName): Promise<Bus> => {
  const { user, password, inboxPrefix } = stack.credentials.service(service);
  return connectBus({ servers: stack.natsUrl, user, pass: password, name: `test as ${service}`, inboxPrefix });
};

/** All that a stream holds now. `bus` must be the audit-projector's, which reads both streams. */
export const readStream = async (bus: Bus, stream: StreamName): Promise<readonly StoredMessage[]> => {
  const head = await waitFor(
    `the head of ${stream}`,
    async () => {
      const found = await streamHead(bus, stream, { timeoutMs: 1_000 });
      return found.ok ? { value: found.value } : undefined;
    },
    READ_DEADLINE_MS,
  );
  const messages: StoredMessage[] = [];
  let upTo = 0;
  const feed = followStream(bus, {
    stream,
    fromSequence: 1,
    onMessage: (message) => {
      messages.push(message);
      upTo = message.sequence;
    },
    onAlive: () => undefined,
    onDefect: (error) => {
      throw error;
    },
  });
  try {
    await waitFor(`${stream} up to ${head.value}`, () => upTo >= head.value, READ_DEADLINE_MS);
  } finally {
    await feed.stop();
  }
  return messages.filter(({ sequence }) => sequence <= head.value);
};

/** The records of one turn or message, in the order they were written. */
export type Operation = readonly LedgerRecord[];

/** Every operation on record, by its subject; claims of uses are not among them. */
export const readOperations = async (bus: Bus): Promise<readonly Operation[]> => {
  const bySubject = new Map<string, LedgerRecord[]>();
  for (const message of await readStream(bus, 'LEDGER')) {
    if (parseSubject(message.subject)?.rest[0] === 'use') continue;
    const record = decodeLedgerRecord({ schema: message.header(SCHEMA_HEADER) ?? '', data: message.data });
    if (!record.ok) throw new Error(`record ${message.sequence} of the ledger cannot be read: ${record.error}`);
    const records = bySubject.get(message.subject) ?? [];
    records.push(record.value);
    bySubject.set(message.subject, records);
  }
  return [...bySubject.values()];
};

/** The audit stream folded by id, as its readers fold it. */
export const readAudit = async (bus: Bus): Promise<ReadonlyMap<string, AuditEvent>> => {
  const byId = new Map<string, AuditEvent>();
  for (const { sequence, data } of await readStream(bus, 'AUDIT')) {
    const event = decodeBody(AuditRecordMessage, data, PAYLOAD_BYTES_MAX);
    if (!event.ok) throw new Error(`record ${sequence} of the audit cannot be read: ${event.error.message}`);
    byId.set(event.value.id, event.value);
  }
  return byId;
};

/** The uses of a grant that are spent for good, by ordinal. `bus` may be the authorizer's. */
export const readUses = async (bus: Bus, grantId: string): Promise<readonly UseClaim[]> => {
  const uses = await jetStreamLedger(bus).uses();
  if (!uses.ok) throw new Error(`the uses could not be read: ${uses.error.reason}`);
  return uses.value
    .map(({ use }) => use)
    .filter((use) => use.grantId === grantId)
    .sort((a, b) => a.ordinal - b.ordinal);
};
