import type { AuthorityClient } from '@sharedos/bus';
import type { Address, AuditEvent, Instant, Result, Unavailable } from '@sharedos/contracts';
import type { LogQuestions } from './ask-log.ts';
import type { RecordStore } from './record-store.ts';
import type { SealKeys } from './seal-keys.ts';

/** What the audit-projector runs on. */
export interface Ports {
  readonly authority: Pick<AuthorityClient, 'open' | 'decide'>;
  readonly log: LogQuestions;
  readonly records: RecordStore;
  readonly keys: SealKeys;
  /** Waits until more has been folded. @returns Whether it was, by the deadline. */
  readonly folded: (timeoutMs: number) => Promise<boolean>;
  /** The sequence of the last record there is, within a deadline of its own. */
  readonly head: () => Promise<Result<number, Unavailable>>;
  /** Why the read model may be behind, or `undefined` when it follows the stream. */
  readonly behind: () => string | undefined;
  /** How far a read model is that is being built, in words; `undefined` once it has all that was there when the process started. */
  readonly building: () => string | undefined;
  readonly roots: Readonly<Record<string, readonly Address[]>>;
  readonly audit: (event: AuditEvent) => Promise<Result<void, Unavailable>>;
  readonly clock: () => Instant;
  readonly ids: () => string;
  readonly onParked: (what: string) => void;
}
