import { type Result, type Unavailable, err, ok, unavailable } from '@sharedos/contracts';
import type { Msg } from 'nats';
import type { Bus } from './bus.ts';
import { type WithHeaders, headerOf } from './headers.ts';

/** A message as a stream holds it. */
export interface StoredMessage extends WithHeaders {
  readonly subject: string;
  readonly sequence: number;
  readonly data: Uint8Array;
  /** When the broker stored it, in milliseconds since the epoch. */
  readonly storedAt: number;
}

export interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** Asks JetStream's API. An error that JetStream states is a value of its own; everything else is `unavailable`. */
export const askJetStream = async <T>(
  bus: Bus,
  natsSubject: string,
  question: unknown,
  timeoutMs: number,
): Promise<Result<T, Unavailable | { readonly kind: 'refused'; readonly error: ApiError }>> => {
  if (!bus.connected) return unavailable('not connected to NATS');
  const answer = await bus.replies.send(natsSubject, question === undefined ? '' : JSON.stringify(question), undefined, timeoutMs);
  if (!answer.ok) return unavailable(answer.error.reason);
  try {
    const value = answer.value.json<T & { readonly error?: ApiError }>();
    return value.error === undefined ? ok(value) : err({ kind: 'refused', error: value.error });
  } catch {
    return unavailable(`the answer on ${natsSubject} is not JSON`);
  }
};

export const refusalReason = (failure: Unavailable | { readonly kind: 'refused'; readonly error: ApiError }): string =>
  failure.kind === 'unavailable' ? failure.reason : `JetStream: ${failure.error.description ?? failure.error.code}`;

/** What the reply subject of a consumer's message says. */
export interface DeliveryPlace {
  readonly sequence: number;
  readonly consumerSequence: number;
  readonly deliveryCount: number;
  readonly storedAt: number;
  /** Messages of the consumer that nobody was given yet. */
  readonly pending: number;
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<consumer sequence>.<nanoseconds>.<pending>`; newer servers put a
 * domain and an account before the stream and may put a token after the end.
 */
export const placeOf = (reply: string | undefined): DeliveryPlace | undefined => {
  const tokens = reply?.split('.') ?? [];
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return undefined;
  const at = tokens.length === 9 ? 4 : 6;
  const [deliveryCount, sequence, consumerSequence] = tokens.slice(at, at + 3).map(Number);
  const storedAt = Math.floor(Number(tokens[at + 3]) / 1_000_000);
  if (!(Number(sequence) > 0) || !(Number(consumerSequence) > 0) || !(Number(deliveryCount) > 0)) return undefined;
  const pending = Number(tokens[at + 4]);
  if (!(pending >= 0)) return undefined;
  return {
    deliveryCount: Number(deliveryCount),
    sequence: Number(sequence),
    consumerSequence: Number(consumerSequence),
    storedAt,
    pending,
  };
};

export const storedFromDelivery = (message: Msg, place: DeliveryPlace): StoredMessage => ({
  subject: message.subject,
  sequence: place.sequence,
  data: message.data,
  storedAt: place.storedAt,
  header: (name) => headerOf(message.headers, name),
});
