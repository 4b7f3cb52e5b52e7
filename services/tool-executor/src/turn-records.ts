import type { AccessContext, AuditEvent, Instant, LedgerRecord, Revision } from '@sharedos/contracts';
import { instantOf, timestampOf } from '@sharedos/contracts';
import type { AuditMark } from '@sharedos/kernel';
import { AuditOutage, TurnLost } from '@sharedos/runtime';
import type { TurnWrites } from './turn-writes.ts';

/** Records that wait for a write. More than an outage of the ledger makes of calls that ran; refusals beyond it are let go. */
const KEPT_MAX = 256;

type Unwritten<Record> = Record extends { readonly audit: unknown } ? Omit<Record, 'at' | 'audit'> : never;

export interface TurnRecordsPorts {
  readonly turnId: string;
  readonly clock: () => Instant;
  readonly ids: () => string;
  /** Writes one record past the ledger: of what became known after the turn's end. */
  readonly audit: (event: AuditEvent) => Promise<unknown>;
}

/**
 * The audit records of one turn: numbered in its order, each inside the ledger record that makes it true.
 *
 * What could not be written is kept and goes with the next record, under its own id: after an outage the end of the turn tells
 * all that was decided, and a record that was stored after all is folded by its id.
 */
export class TurnRecords {
  readonly #writes: TurnWrites;
  readonly #turn: TurnRecordsPorts;
  #revision: Revision | undefined;
  #kept: AuditEvent[] = [];
  #order = 0;
  #ended = false;

  constructor(writes: TurnWrites, turn: TurnRecordsPorts) {
    this.#writes = writes;
    this.#turn = turn;
  }

  /** Whether the one terminal record was asked for. Nothing is written after it. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The revision that the turn sees; stated on every record from now on. */
  set revision(revision: Revision) {
    this.#revision = revision;
  }

  /** Who, where and when of one record. */
  mark(context: AccessContext): AuditMark {
    const { turnId, clock, ids } = this.#turn;
    return { id: ids(), at: instantOf(context.now) ?? clock(), context, place: { turnId, revision: this.#revision } };
  }

  now(): string {
    return timestampOf(this.#turn.clock());
  }

  /** Keeps records for the next write. */
  keep(...events: readonly AuditEvent[]): void {
    this.#kept = [...this.#kept, ...events].slice(0, KEPT_MAX);
  }

  /** Keeps records of what is not going to happen, for the end of the turn; where that is written, they are stored by themselves. */
  async late(...events: readonly AuditEvent[]): Promise<void> {
    if (this.#ended) await Promise.all(events.map(this.#turn.audit));
    else this.keep(...events);
  }

  /** Writes what must stand before anything follows. Rejects with `AuditOutage`, or with `TurnLost` once the turn is over. */
  async before(record: Unwritten<LedgerRecord>, ...events: readonly AuditEvent[]): Promise<void> {
    this.#assertRunning();
    const due = this.#due(events);
    try {
      await this.#writes.before(this.#written(record, due));
    } catch (error) {
      if (error instanceof AuditOutage) this.#kept = [...due, ...this.#kept].slice(0, KEPT_MAX);
      throw error;
    }
  }

  /** Writes what happened. `too_large`: nothing of it was written, and `events` are the caller's to make again. */
  async after(record: Unwritten<LedgerRecord>, ...events: readonly AuditEvent[]): Promise<'written' | 'too_large'> {
    this.#assertRunning();
    return this.#after(record, events);
  }

  /** Whether records wait for the next write, which is then larger than it looks. */
  get keeps(): boolean {
    return this.#kept.length > 0;
  }

  /** Writes what happened, behind its caller's back: see {@link TurnWrites.behind}. */
  async behind(record: Unwritten<LedgerRecord>, ...events: readonly AuditEvent[]): Promise<void> {
    this.#assertRunning();
    return this.#writes.behind(this.#written(record, this.#due(events)));
  }

  /** Writes the terminal record. Whatever else still wants to be written finds the turn over. */
  async end(
    record: Unwritten<Extract<LedgerRecord, { type: 'ended' }>>,
    ...events: readonly AuditEvent[]
  ): Promise<'written' | 'too_large'> {
    this.#assertRunning();
    this.#ended = true;
    return this.#after(record, events);
  }

  /** Writes what became known after the end, behind it. @returns Whether it stands. */
  behindEnd(record: Unwritten<Extract<LedgerRecord, { type: 'settled' }>>, event: AuditEvent): Promise<boolean> {
    return this.#writes.behindEnd(this.#written(record, this.#due([event])));
  }

  /** The recorded answer of a call, or `undefined` when it has none yet. */
  settled(callId: string): ReturnType<TurnWrites['settled']> {
    return this.#writes.settled(callId);
  }

  async #after(record: Unwritten<LedgerRecord>, events: readonly AuditEvent[]): Promise<'written' | 'too_large'> {
    const kept = this.#kept;
    const written = await this.#writes.after(this.#written(record, this.#due(events)));
    if (written === 'too_large') this.#kept = [...kept, ...this.#kept].slice(0, KEPT_MAX);
    return written;
  }

  #written(record: Unwritten<LedgerRecord>, audit: AuditEvent[]): LedgerRecord {
    return { ...record, at: this.now(), audit };
  }

  /** All records due now. One that was numbered and not written keeps its number. */
  #due(events: readonly AuditEvent[]): AuditEvent[] {
    const due = [...this.#kept, ...events];
    this.#kept = [];
    return due.map((event) =>
      event.metadata?.['order'] === undefined ? { ...event, metadata: { ...event.metadata, order: this.#order++ } } : event,
    );
  }

  #assertRunning(): void {
    if (this.#ended) throw new TurnLost('the turn has ended');
  }
}
