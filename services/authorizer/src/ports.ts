import type { Roots } from '@sharedos/bus';
import type { AuditEvent, Instant, Result, Unavailable } from '@sharedos/contracts';
import type { EventStore } from '@sharedos/event-store';
import type { PolicyLanguage } from '@sharedos/kernel';
import type { UsageStore } from '@sharedos/usage';
import type { ActRecords } from './changes/act-records.ts';
import type { AuthorityFold } from './fold/authority-fold.ts';
import type { Tidings } from './escalations/tidings.ts';
import type { TurnTokens } from './turns/turn-token.ts';

/** What the authorizer runs on. `main.ts` passes real adapters; tests pass memory ones. */
export interface Ports {
  readonly store: EventStore;
  readonly fold: AuthorityFold;
  readonly usage: UsageStore;
  readonly tokens: TurnTokens;
  /** Writes one audit record and waits until it is stored: whatever it allows has not happened yet. */
  readonly audit: (event: AuditEvent) => Promise<Result<void, Unavailable>>;
  readonly clock: () => Instant;
  /** Who may manage a namespace without a grant, and whose grants let others; nobody when absent. */
  readonly roots?: Roots;
  /** In which policies may be written; the rules of this project alone when absent. */
  readonly policyLanguages?: readonly PolicyLanguage[];
  /** Told what became of questions; nobody is when absent. */
  readonly tidings?: Tidings;
  /** How long a question may be answered, in milliseconds; a week when absent. */
  readonly questionLastsMs?: number;
  readonly limits: {
    /** Longest wait for the log in one answer. */
    readonly deadlineMs: number;
    /** Added to a turn's time-out: how long it may still be asked about. */
    readonly turnGraceMs: number;
  };
}

/** What commands run on beside it. */
export interface CommandPorts extends Ports {
  readonly records: ActRecords;
}
