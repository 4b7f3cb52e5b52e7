import { type Result, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import type { LogSubscription, Position } from './event-store.ts';

/** A subscription that can be ended for good, as not alive: there is nothing left that could be followed. */
export interface LogFeed extends LogSubscription {
  giveUp(): void;
}

/**
 * What an adapter knows of the history that it reads, whatever keeps it: how far it has existed, whether it is lost, and who
 * follows it. A history that ends before what is known to have existed is not the one we know, and another history's positions
 * must not pass for its own.
 */
export class KnownHistory {
  readonly #feeds = new Set<LogFeed>();
  #seen: Position;
  #lost: string | undefined;

  /** @param end Where the history ended when it was opened. */
  constructor(end: Position) {
    this.#seen = end;
  }

  /** The greatest position known to have existed. */
  get seen(): Position {
    return this.#seen;
  }

  /** Why the store answers nothing any more, once its history is gone. */
  get lost(): string | undefined {
    return this.#lost;
  }

  saw(position: Position): void {
    this.#seen = Math.max(this.#seen, position);
  }

  lose(why: string): Result<never, Unavailable> {
    this.#lost = why;
    for (const feed of this.#feeds) feed.giveUp();
    return unavailable(why);
  }

  /**
   * Takes the position of what was just stored, which lies above all that was known when it was sent.
   *
   * @param why What is told of a history that gave out a position it had given out before.
   */
  accept(position: Position, floor: Position, why: string): Result<Position, Unavailable> {
    if (position <= floor) return this.lose(why);
    this.saw(position);
    return ok(position);
  }

  /** Ends the feed with the history. @returns The feed as its listener holds it. */
  followedBy(feed: LogFeed): LogSubscription {
    this.#feeds.add(feed);
    if (this.#lost !== undefined) feed.giveUp();
    return {
      close: async () => {
        this.#feeds.delete(feed);
        await feed.close();
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#feeds].map((feed) => feed.close()));
    this.#feeds.clear();
  }
}
