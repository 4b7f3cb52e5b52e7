import { type Address, addressKey } from '@sharedos/contracts';
import { routeAt } from '@sharedos/kernel';
import { dispatchWaiting } from './dispatch-waiting.ts';
import type { ParkedMessages, Recipient } from './parked-messages.ts';
import type { Ports } from './ports.ts';

const SWEEP_MS = 5_000;
/** Where nothing can leave, only time passes: it is looked at in every so many sweeps. */
const LAPSED_EVERY = 12;

/**
 * Lets what is parked go as soon as it can: when a route is opened or renewed, and now and then for all, so that what a router that
 * died left behind, and what could not leave at first, is not forgotten. One recipient at a time is looked after once.
 */
export class WaitingMessages {
  readonly #ports: () => Ports;
  readonly #parked: Pick<ParkedMessages, 'recipients'>;
  readonly #onDefect: (error: unknown, where: string) => void;
  readonly #running = new Map<string, { again: boolean; readonly done: Promise<void> }>();
  readonly #stopped = new AbortController();
  #sweeping: Promise<void> = Promise.resolve();

  constructor(ports: () => Ports, parked: Pick<ParkedMessages, 'recipients'>, onDefect: (error: unknown, where: string) => void) {
    this.#ports = ports;
    this.#parked = parked;
    this.#onDefect = onDefect;
  }

  /** Looks after what waits for a recipient; at once, or once more when that is under way. */
  wake(namespaceId: string, recipient: Address): void {
    if (this.#stopped.signal.aborted) return;
    const key = `${namespaceId} ${addressKey(recipient)}`;
    const running = this.#running.get(key);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const task = { again: false, done: this.#run(key, namespaceId, recipient) };
    this.#running.set(key, task);
  }

  /** Begins to look after everybody, now and then. @param wait Waits so many milliseconds, or until it is told to stop. */
  start(wait: (ms: number, signal: AbortSignal) => Promise<unknown>): void {
    this.#sweeping = this.#sweep(wait);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#sweeping;
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  async #run(key: string, namespaceId: string, recipient: Address): Promise<void> {
    // Only after the task is known by its key.
    await Promise.resolve();
    try {
      do {
        const running = this.#running.get(key);
        if (running !== undefined) running.again = false;
        await dispatchWaiting(this.#ports(), namespaceId, recipient);
      } while (this.#running.get(key)?.again === true && !this.#stopped.signal.aborted);
    } catch (error) {
      this.#onDefect(error, 'what waits for a route');
    } finally {
      this.#running.delete(key);
    }
  }

  async #sweep(wait: (ms: number, signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const { signal } = this.#stopped;
    for (let round = 1; !signal.aborted; round += 1) {
      await wait(SWEEP_MS, signal);
      if (signal.aborted) return;
      const recipients = await this.#parked.recipients();
      for (const one of recipients.ok ? recipients.value : []) {
        if (signal.aborted) return;
        if (round % LAPSED_EVERY === 0 || (await this.#canLeave(one))) this.wake(one.namespaceId, one.recipient);
      }
    }
  }

  async #canLeave({ namespaceId, recipient }: Recipient): Promise<boolean> {
    const { routes, clock } = this.#ports();
    const route = await routes.of(namespaceId, recipient);
    return route.ok && routeAt(route.value, clock()) !== 'lapsed';
  }
}
