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
  readonly #onLost: () => void;
  #claim: LedgerClaim;
  /** One write at a time, so that a retry never races the next record. */
  #last: Promise<unknown> = Promise.resolve();
  #underWay = 0;
  #lost: TurnLost | undefined;

  /** @param onLost Called once, when a write says that this process no longer owns the turn: also one that nobody waits for. */
  constructor(ledger: Ledger, claim: LedgerClaim, onLost: () => void = () => undefined) {
    this.#ledger = ledger;
    this.#claim = claim;
    this.#onLost = onLost;
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
    return this.#inTurn(() => this.#insist(record));
  }

  /**
   * Writes a record of what happened that its caller need not wait for, and that surely fits. Whatever is written next waits for it;
   * if it fails, the turn is lost and nothing is written any more.
   */
  behind(record: LedgerRecord): Promise<void> {
    return this.#inTurn(async () => {
      if ((await this.#insist(record)) === 'too_large') throw failureOf({ kind: 'too_large' }, true);
    });
  }

  /**
   * Writes a record behind the end of the turn, once: whoever wrote there first knows it, or does not need to.
   *
   * @returns Whether it stands.
   */
  async behindEnd(record: LedgerRecord): Promise<boolean> {
    const writing = this.#inTurn(() => this.#claim.append(record));
    const written = await writing.catch((error: unknown) => {
      if (!(error instanceof TurnLost)) throw error;
    });
    return written?.ok === true;
  }

  /** Calls `tell` when all that was asked for so far is written, at once where it is; never when the turn was lost before. */
  afterwards(tell: () => void): void {
    if (this.#underWay === 0 && this.#lost === undefined) tell();
    else void this.#last.then(() => (this.#lost === undefined ? tell() : undefined));
  }

  /** The recorded answer of a call, or `undefined` when it has none yet. An answer that is being written is waited for. */
  settled(callId: string): Promise<ToolResult | undefined> {
    return this.#inTurn(() => this.#settled(callId));
  }

  async #settled(callId: string): Promise<ToolResult | undefined> {
    const read = await this.#ledger.read(this.#claim.key);
    const records = read.ok ? (read.value?.records ?? []) : [];
    return records.flatMap((record) => (record.type === 'settled' && record.callId === callId ? [record.result] : []))[0];
  }

  async #insist(record: LedgerRecord): Promise<'written' | 'too_large'> {
    const deadline = performance.now() + OUTCOME_DEADLINE_MS;
    for (let attempt = 0; ; attempt += 1) {
      const written = await this.#claim.append(record);
      if (written.ok) return 'written';
      if (written.error.kind === 'too_large') return 'too_large';
      if (written.error.kind !== 'unavailable' || performance.now() > deadline) throw failureOf(written.error, true);
      await pause(backoffMs(attempt));
      if (await this.#stands(record)) return 'written';
    }
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

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      // After an outcome that could not be recorded, a later record would tell a turn in which it never came.
      if (this.#lost !== undefined) throw this.#lost;
      return work();
    });
    this.#underWay += 1;
    this.#last = done.catch((error: unknown) => this.#failed(error)).then(() => (this.#underWay -= 1));
    return done;
  }

  #failed(error: unknown): void {
    if (!(error instanceof TurnLost) || this.#lost !== undefined) return;
    this.#lost = error;
    this.#onLost();
  }
}

const failureOf = (refusal: LedgerRefusal, afterEffect = false): Error => {
  if (refusal.kind === 'fenced') return new TurnLost('another process took this turn over');
  const why = refusal.kind === 'unavailable' ? refusal.reason : refusal.kind;
  return afterEffect
    ? new TurnLost(`what happened could not be recorded: ${why}`)
    : new AuditOutage(`a record before an effect could not be written: ${why}`);
};
