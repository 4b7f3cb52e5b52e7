import type { AuditEvent, Instant, Result, Unavailable } from '@sharedos/contracts';
import type { EventStore } from '@sharedos/event-store';
import type { UsageStore } from '@sharedos/usage';
import type { AuthorityFold } from './authority-fold.ts';
import type { TurnTokens } from './turn-token.ts';

/** What the authorizer runs on. `main.ts` passes real adapters; tests pass memory ones. */
export interface Ports {
  readonly store: EventStore;
  readonly fold: AuthorityFold;
  readonly usage: UsageStore;
  readonly tokens: TurnTokens;
  /** Writes one audit record and waits until it is stored: whatever it allows has not happened yet. */
  readonly audit: (event: AuditEvent) => Promise<Result<void, Unavailable>>;
  readonly clock: () => Instant;
  readonly limits: {
    /** Longest wait for the log in one answer. */
    readonly deadlineMs: number;
    /** Added to a turn's time-out: how long it may still be asked about. */
    readonly turnGraceMs: number;
  };
}
