import { type Result, type Unavailable, err, ok, unavailable } from '@sharedos/contracts';
import type { Msg } from 'nats';
import type { HeaderFields } from './headers.ts';
import type { NoReply } from './replies.ts';

export interface PublishStoredOptions {
  readonly timeoutMs: number;
  /** Store only if the subject's last message has this sequence; 0 for a subject without any. */
  readonly expectedLastSubjectSequence?: number;
  /** Minted per write: two messages of one id within the stream's window are stored once, whatever their subjects. */
  readonly messageId?: string;
  readonly headers?: HeaderFields;
}

export interface StoredAck {
  readonly sequence: number;
  readonly duplicate: boolean;
}

export type StoreRefusal =
  | { readonly kind: 'wrong_sequence'; readonly found?: number }
  | { readonly kind: 'full' }
  | { readonly kind: 'too_large' }
  | Unavailable;

export const storeHeaders = (options: PublishStoredOptions): HeaderFields => ({
  ...(options.expectedLastSubjectSequence === undefined
    ? {}
    : { 'Nats-Expected-Last-Subject-Sequence': String(options.expectedLastSubjectSequence) }),
  ...(options.messageId === undefined ? {} : { 'Nats-Msg-Id': options.messageId }),
});

interface Ack {
  readonly stream?: string;
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: { readonly err_code?: number; readonly description?: string };
}

const WRONG_LAST_SEQUENCE = 10071;
const STORE_FAILED = 10077;
const MESSAGE_TOO_LARGE = 10054;
// Storage of the account or of the server is spent; the stream's own limits come as STORE_FAILED with a text.
const NO_ROOM = new Set([10002, 10023, 10028, 10047]);

/** What a stream answered to a publish. */
export const readAck = (natsSubject: string, answer: Result<Msg, NoReply>): Result<StoredAck, StoreRefusal> => {
  if (!answer.ok) {
    if (answer.error.kind === 'too_large') return err({ kind: 'too_large' });
    return unavailable(answer.error.kind === 'no_responders' ? `no stream takes ${natsSubject}` : answer.error.reason);
  }
  const ack = parseAck(answer.value);
  if (ack === undefined) return unavailable(`the answer on ${natsSubject} is not an acknowledgement`);
  if (ack.error !== undefined) return refusal(ack.error.err_code ?? 0, ack.error.description ?? '');
  if (typeof ack.stream !== 'string' || !Number.isSafeInteger(ack.seq))
    return unavailable(`the answer on ${natsSubject} is not an acknowledgement`);
  return ok({ sequence: ack.seq as number, duplicate: ack.duplicate === true });
};

const parseAck = (message: Msg): Ack | undefined => {
  try {
    const value = message.json<unknown>();
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
};

const refusal = (code: number, description: string): Result<never, StoreRefusal> => {
  if (code === WRONG_LAST_SEQUENCE) {
    const found = /: (\d+)$/.exec(description)?.[1];
    return err({ kind: 'wrong_sequence', ...(found === undefined ? {} : { found: Number(found) }) });
  }
  if (code === MESSAGE_TOO_LARGE) return err({ kind: 'too_large' });
  // "maximum messages exceeded", "maximum messages per subject exceeded", "maximum bytes exceeded"; any other text is a fault.
  if ((code === STORE_FAILED && /^maximum .* exceeded$/.test(description)) || NO_ROOM.has(code)) return err({ kind: 'full' });
  return unavailable(`the stream did not store the message (${code} ${description})`);
};
