import { type Bus, type StoreRefusal, deleteMessage, readSubject, subjectCounts } from '@sharedos/bus';
import {
  type Address,
  type ParkedMessage,
  ParkedMessage as ParkedMessageBody,
  type Result,
  SUBJECT_ROOT,
  type Unavailable,
  addressId,
  decodeOwnBody,
  ok,
  parseSubject,
  principalSubject,
} from '@sharedos/contracts';

const ANSWER_MS = 5_000;
/** What waits for one recipient, and of one sender for it: nobody fills the place of all, and no recipient that of the others. */
export const PARKED_PER_RECIPIENT_MAX = 500;
export const PARKED_PER_SENDER_MAX = 100;

export interface ParkedCopy {
  readonly sequence: number;
  readonly parked: ParkedMessage;
}

export interface Recipient {
  readonly namespaceId: string;
  readonly recipient: Address;
}

const allFor = (namespaceId: string, recipient: Address): string => `${principalSubject('parked', namespaceId, recipient)}.>`;
const placeOf = (namespaceId: string, { sender, receiver }: { readonly sender: Address; readonly receiver: Address }): string =>
  principalSubject('parked', namespaceId, receiver, sender.kind, addressId(sender));

/** Messages that wait for a route, by recipient and sender. */
export class ParkedMessages {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Parked twice within minutes, it is kept once. */
  async park(parked: ParkedMessage): Promise<Result<void, StoreRefusal>> {
    const { context, envelope, operation } = parked;
    const { namespaceId } = context;
    const put = (messageId?: string) =>
      this.#bus.publishStored(
        placeOf(namespaceId, envelope),
        { message: ParkedMessageBody, body: parked },
        { timeoutMs: ANSWER_MS, ...(messageId === undefined ? {} : { messageId }) },
      );
    const first = await put(`parked-${operation}`);
    // The broker remembers a copy also after it was taken out.
    const stored = first.ok && first.value.duplicate && !(await this.#holds(namespaceId, parked)) ? await put() : first;
    return stored.ok ? ok(undefined) : stored;
  }

  async #holds(namespaceId: string, { envelope, operation }: ParkedMessage): Promise<boolean> {
    const waiting = await this.waitingFor(namespaceId, envelope.receiver);
    return waiting.ok && waiting.value.some(({ parked }) => parked.operation === operation);
  }

  /** All that waits for a recipient, oldest first. What cannot be read is left where it is. */
  async waitingFor(namespaceId: string, recipient: Address): Promise<Result<readonly ParkedCopy[], Unavailable>> {
    const stored = await readSubject(this.#bus, 'MESSAGES', allFor(namespaceId, recipient), { timeoutMs: ANSWER_MS });
    if (!stored.ok) return stored;
    return ok(
      stored.value.flatMap(({ sequence, data }) => {
        const parked = decodeOwnBody(ParkedMessageBody, data);
        return parked.ok ? [{ sequence, parked: parked.value }] : [];
      }),
    );
  }

  async count(namespaceId: string, recipient: Address): Promise<Result<number, Unavailable>> {
    const counts = await subjectCounts(this.#bus, 'MESSAGES', allFor(namespaceId, recipient), { timeoutMs: ANSWER_MS });
    return counts.ok ? ok(sum(Object.values(counts.value))) : counts;
  }

  /** Why no more is parked, if so. What others park at this moment is not counted, so a bound may be passed by as many. */
  async noRoomFor(
    namespaceId: string,
    envelope: { readonly sender: Address; readonly receiver: Address },
  ): Promise<Result<'parking_full' | 'sender_parking_full' | undefined, Unavailable>> {
    const counts = await subjectCounts(this.#bus, 'MESSAGES', allFor(namespaceId, envelope.receiver), { timeoutMs: ANSWER_MS });
    if (!counts.ok) return counts;
    if ((counts.value[placeOf(namespaceId, envelope)] ?? 0) >= PARKED_PER_SENDER_MAX) return ok('sender_parking_full');
    return ok(sum(Object.values(counts.value)) >= PARKED_PER_RECIPIENT_MAX ? 'parking_full' : undefined);
  }

  /** Everybody for whom anything waits. */
  async recipients(): Promise<Result<readonly Recipient[], Unavailable>> {
    const counts = await subjectCounts(this.#bus, 'MESSAGES', `${SUBJECT_ROOT}.*.parked.>`, { timeoutMs: ANSWER_MS });
    if (!counts.ok) return counts;
    const found = new Map<string, Recipient>();
    for (const subject of Object.keys(counts.value)) {
      const parsed = parseSubject(subject);
      if (parsed?.verb !== 'parked' || parsed.principal === undefined) continue;
      const { namespaceId, principal: recipient } = parsed;
      found.set(allFor(namespaceId, recipient), { namespaceId, recipient });
    }
    return ok([...found.values()]);
  }

  /** One that could not be taken out is found again, and nothing more comes of it: its record says how it went. */
  async takeOut({ sequence }: Pick<ParkedCopy, 'sequence'>): Promise<void> {
    await deleteMessage(this.#bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
  }
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
