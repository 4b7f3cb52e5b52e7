import type { AuthorityClient, Bus } from '@sharedos/bus';
import type { AuditEvent, Instant, MessageEnvelope, Result, Unavailable } from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';

/** What the messaging-router runs on. */
export interface Ports {
  readonly bus: Bus;
  readonly authority: AuthorityClient;
  readonly ledger: Ledger;
  /** Looks a message up in an inbox, by its subject, when its delivery was not acknowledged. */
  readonly inboxHolds: (inbox: string, envelope: MessageEnvelope) => Promise<boolean>;
  /** Writes one record of a send that was refused before it had a place in the ledger. */
  readonly audit: (event: AuditEvent) => Promise<Result<void, Unavailable>>;
  readonly clock: () => Instant;
  readonly ids: () => string;
  readonly instance: string;
}
