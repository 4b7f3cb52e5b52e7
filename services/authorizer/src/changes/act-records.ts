import { backoffMs, pause } from '@sharedos/bus';
import type { AuditEvent } from '@sharedos/contracts';
import type { Ports } from '../ports.ts';

const WAITING_MAX = 10_000;

/**
 * Writes the records of what was changed. A change stands in the log before its record is written, so a record that cannot be
 * written now is kept and written as soon as it can be. What this process forgets by ending, the next one writes from the log.
 *
 * @see docs/adr/0008-acts-are-recorded-from-the-log.md
 */
export class ActRecords {
  readonly #audit: Ports['audit'];
  readonly #waiting = new Map<string, AuditEvent>();
  readonly #closing = new AbortController();
  #writing: Promise<void> | undefined;

  constructor(audit: Ports['audit']) {
    this.#audit = audit;
  }

  /** Records that wait to be written. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether so many wait that nothing more may be changed: what is changed must be recorded. */
  get isFull(): boolean {
    return this.#waiting.size >= WAITING_MAX;
  }

  /** Writes the record, or keeps it. */
  async write(record: AuditEvent): Promise<void> {
    if ((await this.#audit(record)).ok) return;
    this.#waiting.set(record.id, record);
    this.#writing ??= this.#writeWaiting();
  }

  /** Waits until nothing is being tried; what waits still is left to the log. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
  }

  async #writeWaiting(): Promise<void> {
    const { signal } = this.#closing;
    for (let failures = 0; this.#waiting.size > 0 && !signal.aborted;) {
      const [record] = this.#waiting.values();
      if (record === undefined) break;
      if ((await this.#audit(record)).ok) {
        this.#waiting.delete(record.id);
        failures = 0;
      } else {
        await pause(backoffMs(failures), signal);
        failures += 1;
      }
    }
    this.#writing = undefined;
  }
}
