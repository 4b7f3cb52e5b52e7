import { type Address, addressKey, encodeName } from '@sharedos/contracts';

/** Those who wait for a change that concerns a principal. A change costs nothing where nobody waits. */
export class Watchers {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #changed = new Set<string>();

  /** Waits for the next change; or as long as it may, or until the signal. Who asks misses no change that is told after the call. */
  async next(namespaceId: string, principal: Address, forMs: number, signal?: AbortSignal): Promise<void> {
    const key = keyOf(namespaceId, principal);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    waiting.add(wake);
    const timer = setTimeout(wake, Math.max(0, forMs));
    signal?.addEventListener('abort', wake, { once: true });
    await promise;
    clearTimeout(timer);
    signal?.removeEventListener('abort', wake);
    waiting.delete(wake);
    if (waiting.size === 0) this.#waiting.delete(key);
  }

  /** Takes note of a change; nobody is told before {@link Watchers.tell}. */
  note(namespaceId: string, concerned: readonly Address[]): void {
    if (this.#waiting.size > 0) for (const principal of concerned) this.#changed.add(keyOf(namespaceId, principal));
  }

  tell(): void {
    for (const key of this.#changed) for (const wake of this.#waiting.get(key) ?? []) wake();
    this.#changed.clear();
  }

  close(): void {
    for (const waiting of this.#waiting.values()) for (const wake of waiting) wake();
  }
}

const keyOf = (namespaceId: string, principal: Address): string => encodeName(namespaceId, addressKey(principal));
