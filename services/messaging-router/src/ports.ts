import type { AuthorityClient, Bus } from '@sharedos/bus';
import type { AuditEvent, Instant, MessageEnvelope, Result, Unavailable } from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';
import type { InboxRuleBook } from './inbox-rules.ts';

/** What the messaging-router runs on. */
export interface Ports {
  readonly bus: Bus;
  readonly authority: Pick<AuthorityClient, 'open' | 'decide' | 'namespace'>;
  readonly ledger: Ledger;
  /** Looks a message up in an inbox, by its subject, when its delivery was not acknowledged. */
  readonly inboxHolds: (inbox: string, envelope: MessageEnvelope) => Promise<boolean>;
  /** Writes one record of a send that was refused before it had a place in the ledger. */
  readonly audit: (event: AuditEvent) => Promise<Result<void, Unavailable>>;
  /** What recipients say of whom they hear, and how much of it this router has let through. */
  readonly rules: Pick<InboxRuleBook, 'of' | 'fault'>;
  readonly clock: () => Instant;
  /** Waits so many milliseconds of real time. */
  readonly wait: (ms: number) => Promise<unknown>;
  readonly ids: () => string;
  readonly instance: string;
}
