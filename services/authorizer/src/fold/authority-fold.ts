import { type Instant, type Result, type Unavailable, instantOf, ok, unavailable } from '@sharedos/contracts';
import type { EventStore, LogListener, LogSubscription, Position, Recorded } from '@sharedos/event-store';
import { AuthorityIndex } from './authority-index.ts';
import { readGrantEvent } from '../changes/grant-command.ts';
import { NamespaceIndex } from './namespace-index.ts';
import { Watchers } from './watchers.ts';

/** What the log comes to up to a position. */
export interface Folded {
  readonly position: Position;
  readonly index: AuthorityIndex;
  readonly namespaces: NamespaceIndex;
}

interface Waiter {
  readonly position: Position;
  resolve(reached: boolean): void;
}

/**
 * This replica's view of the log: the index, how far it has been folded, and whether it may be trusted.
 *
 * An event that cannot be read makes the replica untrusted: authority it does not understand may be a revocation.
 */
export class AuthorityFold implements LogListener {
  readonly index: AuthorityIndex;
  readonly namespaces: NamespaceIndex;
  readonly watchers = new Watchers();
  readonly #waiters = new Set<Waiter>();
  readonly #parked: string[] = [];
  readonly #onTrouble: (what: string) => void;
  #position: Position;
  /** The position of the last event that was folded; beyond {@link position} while an append is being delivered. */
  #folded: Position;
  #oldest: Position;
  /** The newest position that somebody waited for. */
  #wanted: Position = 0;
  #alive = false;
  #subscription: LogSubscription | undefined;

  /** @param from What was folded before, to go on from; the beginning of the log when absent. */
  constructor(
    onTrouble: (what: string) => void,
    { position, index, namespaces }: Folded = { position: 0, index: new AuthorityIndex(), namespaces: new NamespaceIndex() },
  ) {
    this.#onTrouble = onTrouble;
    this.index = index;
    this.namespaces = namespaces;
    this.#position = position;
    this.#folded = position;
    this.#oldest = index.oldest;
  }

  follow(store: EventStore): void {
    this.#subscription = store.subscribe(this.#position, this);
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
    for (const waiter of this.#waiters) waiter.resolve(false);
    this.#waiters.clear();
    this.watchers.close();
  }

  get position(): Position {
    return this.#position;
  }

  /** Positions between what is folded and the newest that somebody had to see. */
  get behind(): number {
    return Math.max(0, this.#wanted - this.#position);
  }

  /** The oldest position that authority is still known at: what was before it is forgotten. */
  get oldest(): Position {
    return this.#oldest;
  }

  /** What is folded, to be kept; `undefined` while it stands between two positions, or holds less than the log because of an event that was parked. */
  get folded(): Folded | undefined {
    if (this.#parked.length > 0 || this.#folded > this.#position) return undefined;
    return { position: this.#position, index: this.index, namespaces: this.namespaces };
  }

  /**
   * Forgets what only turns opened before an instant are answered from. They were opened at a position below that of the last event
   * stamped before it: an open is at or after everything acknowledged.
   */
  forget(before: Instant): void {
    this.#oldest = Math.max(this.#oldest, this.index.positionAt(before));
    this.index.forget(this.#oldest);
    this.namespaces.forget(this.#oldest);
  }

  /** Why this replica must not answer, or `undefined` when it may. */
  get trouble(): string | undefined {
    if (this.#parked.length > 0) return `an event of the log cannot be read: ${this.#parked[0]}`;
    return this.#alive ? undefined : 'the log is silent';
  }

  /** Waits until everything up to `position` has been folded. */
  async until(position: Position, deadlineMs: number): Promise<Result<void, Unavailable>> {
    if (this.#parked.length > 0) return unavailable(this.trouble ?? 'an event was parked');
    if (this.#position >= position) return ok(undefined);
    this.#wanted = Math.max(this.#wanted, position);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter: Waiter = { position, resolve };
    this.#waiters.add(waiter);
    const timer = setTimeout(() => resolve(false), Math.max(0, deadlineMs));
    const reached = await promise;
    clearTimeout(timer);
    this.#waiters.delete(waiter);
    if (this.#parked.length > 0) return unavailable(this.trouble ?? 'an event was parked');
    return reached ? ok(undefined) : unavailable(`the fold stands at ${this.#position}, behind ${position}`);
  }

  event(recorded: Recorded): void {
    const { stream, event, position } = recorded;
    if (position <= this.#position) return;
    this.#folded = position;
    if (stream.category !== 'grant') {
      const why = this.namespaces.apply(recorded);
      if (why !== undefined) this.parked({ position, natsSubject: `${stream.category}/${stream.id}`, why });
      return;
    }
    const read = readGrantEvent(event);
    if (read !== undefined) {
      const concerned = this.index.apply(stream.namespaceId, read, instantOf(event.at) ?? 0, position);
      this.watchers.note(stream.namespaceId, concerned);
    } else
      this.parked({
        position,
        natsSubject: `${stream.category}/${stream.id}`,
        why: `${event.type} of version ${event.schemaVersion} is not known`,
      });
  }

  parked({ position, natsSubject, why }: { position: Position; natsSubject: string; why: string }): void {
    const what = `${why} (${natsSubject} at ${position})`;
    this.#parked.push(what);
    this.#onTrouble(what);
  }

  reached(position: Position): void {
    if (position <= this.#position) return;
    this.#position = position;
    for (const waiter of this.#waiters) if (waiter.position <= position) waiter.resolve(true);
    this.watchers.tell();
  }

  alive(isAlive: boolean): void {
    if (this.#alive && !isAlive) this.#onTrouble('the log is silent');
    this.#alive = isAlive;
  }
}
