import { type Bus, backoffMs, pause } from '@sharedos/bus';
import {
  type AuditEvent,
  AuditRecordMessage,
  type LedgerRecord,
  LedgerRecordMessage,
  auditSubject,
  hashOf,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';

export const NAMESPACES = ['one', 'two', 'three'] as const;

/** How often a record is written a second time though the first was acknowledged: delivery is at least once. */
const TWICE_EVERY = 11;
/** How many records ride in one of the ledger. */
const OUTBOX_SIZE = 3;
const ACK_MS = 5_000;

const alice = { kind: 'human', userId: 'alice' } as const;
const scout = { kind: 'agent', agentId: 'scout' } as const;
const KINDS = [
  { type: 'authorization.checked', outcome: 'allowed' },
  { type: 'authorization.checked', outcome: 'denied', reason: 'no_matching_grant' },
  { type: 'tool.invoked', outcome: 'succeeded', tool: 'files.read' },
  { type: 'turn.ended', outcome: 'failed', reason: 'turn_cancelled' },
] as const;

/** A record with a value in every field that one can have in common with others. */
const recordOf = (writer: number, number: number): AuditEvent => ({
  version: '1',
  id: `${writer}-${number}`,
  at: timestampOf(Date.now()),
  traceId: `trace-${writer}-${number % 40}`,
  namespaceId: NAMESPACES[(writer + Math.floor(number / OUTBOX_SIZE)) % NAMESPACES.length] ?? 'one',
  actor: scout,
  authority: alice,
  owner: alice,
  purpose: 'testing',
  resource: { namespace: 'files', path: ['notes', `${number % 7}.md`], owner: alice },
  action: 'read',
  grantId: `grant-${number % 5}`,
  authorityHash: hashOf(writer),
  operationId: `call-${writer}-${number}`,
  metadata: { turnId: `turn-${writer}`, order: number, usageTaken: number % 3 === 0, failClosed: number % 17 === 0 },
  ...(KINDS[number % KINDS.length] ?? KINDS[0]),
});

/**
 * One of those who record, with a connection of its own: into the ledger, whose records are an outbox of audit records, or straight
 * into the audit, as before an effect.
 */
export class RecordWriter {
  readonly bus: Bus;
  /** What was acknowledged: namespace and id. */
  readonly written: string[] = [];
  readonly #number: number;
  readonly #into: 'ledger' | 'audit';
  #next = 0;

  constructor(bus: Bus, number: number, into: 'ledger' | 'audit') {
    this.bus = bus;
    this.#number = number;
    this.#into = into;
  }

  /** Records so many more, each once the one before was acknowledged. */
  async write(count: number): Promise<void> {
    const until = this.#next + count;
    while (this.#next < until) {
      const size = Math.min(this.#into === 'ledger' ? OUTBOX_SIZE - (this.#next % OUTBOX_SIZE) : 1, until - this.#next);
      const records = Array.from({ length: size }, (_, index) => recordOf(this.#number, this.#next + index));
      await this.#store(records);
      if (this.#next % TWICE_EVERY === 0) await this.#store(records);
      this.written.push(...records.map(({ namespaceId, id }) => `${namespaceId} ${id}`));
      this.#next += size;
    }
  }

  /** Again and again until it is acknowledged: what came to nothing may have been stored. */
  async #store(records: readonly AuditEvent[]): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      const stored = await this.#publish(records);
      if (stored.ok) return;
      await pause(backoffMs(failures, 500));
    }
  }

  #publish([first, ...more]: readonly AuditEvent[]) {
    if (first === undefined) throw new RangeError('nothing to record');
    if (this.#into === 'audit')
      return this.bus.publishStored(auditSubject(first), { message: AuditRecordMessage, body: first }, { timeoutMs: ACK_MS });
    const body: LedgerRecord = { type: 'noted', at: first.at, audit: [first, ...more] };
    return this.bus.publishStored(
      ledgerSubject(first.namespaceId, this.#number),
      { message: LedgerRecordMessage, body },
      { timeoutMs: ACK_MS },
    );
  }
}

export const ledgerSubject = (namespaceId: string, writer: number): string =>
  namespaceSubject('ledger', namespaceId, 'execution', hashOf(writer));
