import { type LedgerRecord, type ToolResult, sameJson } from '@sharedos/contracts';
import type { Ledger, LedgerClaim, LedgerRefusal } from '@sharedos/ledger';
import { AuditOutage, TurnLost } from '@sharedos/runtime';
import { backoffMs, pause } from '@sharedos/bus';

/** How long a record that says what already happened is tried again while the broker is away. */
const OUTCOME_DEADLINE_MS = 30_000;

/**
 * The writes of one turn into the ledger, and what each failure means for it.
 *
 * A record that must precede an effect is written once: when its fate is unknown the effect must not happen. A record of what
 * did happen is tried again until the broker is back, after reading what stands there.
 */
export class TurnWrites {
  readonly #ledger: Ledger;
  #claim: LedgerClaim;
  /** One write at a time, so that a retry never races the next record. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(ledger: Ledger, claim: LedgerClaim) {
    this.#ledger = ledger;
    this.#claim = claim;
  }

  /** Writes a record that must stand before anything follows. Rejects with `AuditOutage`, or `TurnLost` when fenced. */
  before(record: LedgerRecord): Promise<void> {
    return this.#inTurn(async () => {
      const written = await this.#claim.append(record);
      if (!written.ok) throw failureOf(written.error);
    });
  }

  /**
   * Writes a record of what happened. Resolves with `too_large` for the caller to settle with less; rejects with `TurnLost`
   * when another owns the turn by now, or nobody could be reached for too long.
   */
  after(record: LedgerRecord): Promise<'written' | 'too_large'> {
    return this.#inTurn(async () => {
      const deadline = performance.now() + OUTCOME_DEADLINE_MS;
      for (let attempt = 0; ; attempt += 1) {
        const written = await this.#claim.append(record);
        if (written.ok) return 'written';
        if (written.error.kind === 'too_large') return 'too_large';
        if (written.error.kind !== 'unavailable' || performance.now() > deadline) throw failureOf(written.error, true);
        await pause(backoffMs(attempt));
        if (await this.#stands(record)) return 'written';
      }
    });
  }

  /** The recorded answer of a call, or `undefined` when it has none yet. */
  async settled(callId: string): Promise<ToolResult | undefined> {
    const read = await this.#ledger.read(this.#claim.key);
    const records = read.ok ? (read.value?.records ?? []) : [];
    return records.flatMap((record) => (record.type === 'settled' && record.callId === callId ? [record.result] : []))[0];
  }

  /** Reads back whether `record` was stored after all; if not, takes the turn up again where it stands, unless it is another's. */
  async #stands(record: LedgerRecord): Promise<boolean> {
    const read = await this.#ledger.read(this.#claim.key);
    if (!read.ok) return false;
    const history = read.value;
    const last = history?.records.at(-1);
    if (history === undefined || last === undefined) throw new TurnLost('the records of this turn are gone');
    // What was read back has its members in the order of its schema, not in the order they were written.
    if (sameJson(last, JSON.parse(JSON.stringify(record)))) {
      this.#claim = this.#ledger.resume(this.#claim.key, history);
      return true;
    }
    if (last.type === 'ended') throw new TurnLost('another process ended this turn');
    this.#claim = this.#ledger.resume(this.#claim.key, history);
    return false;
  }

  async #inTurn<T>(write: () => Promise<T>): Promise<T> {
    const waiting = this.#last.then(write, write);
    this.#last = waiting.catch(() => undefined);
    return waiting;
  }
}

const failureOf = (refusal: LedgerRefusal, afterEffect = false): Error => {
  if (refusal.kind === 'fenced') return new TurnLost('another process took this turn over');
  const why = refusal.kind === 'unavailable' ? refusal.reason : refusal.kind;
  return afterEffect
    ? new TurnLost(`what happened could not be recorded: ${why}`)
    : new AuditOutage(`a record before an effect could not be written: ${why}`);
};
