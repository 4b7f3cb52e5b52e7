import type { BusMessage } from '@sharedos/bus';
import {
  type AuditEvent,
  AuditRecordMessage,
  PAYLOAD_BYTES_MAX,
  type Result,
  SCHEMA_HEADER,
  decodeBody,
  namespaceSubject,
  ok,
  unavailable,
} from '@sharedos/contracts';
import { CLIENT_CODES, type ClientError, refused } from './client-error.ts';
import type { Session } from './session.ts';

/** Records of one subject that were published and did not arrive; `records.query` has them. Sequences are the stream's, exclusive. */
export interface Gap {
  readonly natsSubject: string;
  readonly after: number;
  readonly before: number;
}

export interface AuditTailOptions {
  readonly onRecord: (event: AuditEvent, sequence: number) => void;
  /** A live subscription may lose messages; whoever needs all of them must know. */
  readonly onGap: (gap: Gap) => void;
}

export interface AuditTail {
  stop(): Promise<void>;
}

const SEQUENCE = 'Nats-Sequence';
const LAST_SEQUENCE = 'Nats-Last-Sequence';

/** Follows the live copy of the namespace's audit stream. Only configured auditors may; there is no history in it. */
export const tailAudit = async (session: Session, options: AuditTailOptions): Promise<Result<AuditTail, ClientError>> => {
  const gaps = new GapDetector();
  const take = (message: BusMessage): void => {
    if (message.header(SCHEMA_HEADER) !== AuditRecordMessage.name) return;
    const sequence = Number(message.header(SEQUENCE));
    const record = decodeBody(AuditRecordMessage, message.data, PAYLOAD_BYTES_MAX);
    if (!record.ok || !Number.isSafeInteger(sequence) || sequence < 1) return;
    const gap = gaps.see(message.subject, sequence, Number(message.header(LAST_SEQUENCE) ?? 0));
    if (gap !== undefined) options.onGap(gap);
    options.onRecord(record.value, sequence);
  };
  const subscribed = await session.bus.subscribe(`${namespaceSubject('feed.audit', session.namespaceId)}.>`, take, {
    timeoutMs: session.requestTimeoutMs,
  });
  if (subscribed.ok) return ok({ stop: () => subscribed.value.stop() });
  return subscribed.error.reason.startsWith('no permission')
    ? refused(CLIENT_CODES.notPermitted, 'this principal is not configured as an auditor of the namespace', false)
    : unavailable(subscribed.error.reason);
};

/**
 * Each copy names its own sequence and that of the record before it on the same subject (one subject per outcome and type). A
 * record before it that we did not see, although we were already listening then, is a gap.
 */
export class GapDetector {
  readonly #last = new Map<string, number>();
  #first: number | undefined;

  see(natsSubject: string, sequence: number, previous: number): Gap | undefined {
    this.#first ??= sequence;
    const seen = this.#last.get(natsSubject);
    // A record that comes twice, as delivery allows, moves nothing back.
    if (seen !== undefined && sequence <= seen) return undefined;
    this.#last.set(natsSubject, sequence);
    const expected = seen ?? this.#first;
    const missed = seen === undefined ? previous > this.#first : previous !== seen && previous > seen;
    return missed ? { natsSubject, after: expected, before: sequence } : undefined;
  }
}
