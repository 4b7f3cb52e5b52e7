import type { AuthorityClient, Bus } from '@sharedos/bus';
import type { AuditEvent, Instant, MessageEnvelope, Result, Unavailable } from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';
import type { InboxRuleBook } from './inbox-rules.ts';
import type { ParkedMessages } from './parked-messages.ts';
import type { RouteLeases } from './route-leases.ts';
import type { WaitingMessages } from './waiting-messages.ts';

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
  readonly rules: Pick<InboxRuleBook, 'of' | 'fault' | 'blocks'>;
  /** Whether there is a live path to a recipient, as it leases it itself. */
  readonly routes: Pick<RouteLeases, 'of' | 'change'>;
  /** What waits for such a path. */
  readonly parked: Pick<ParkedMessages, 'park' | 'waitingFor' | 'count' | 'noRoomFor' | 'takeOut'>;
  /** Told that somebody may be reached again. */
  readonly waiting: Pick<WaitingMessages, 'wake'>;
  /** How long nothing is heard of a send before its router is taken for gone. */
  readonly sendLeaseMs: number;
  readonly clock: () => Instant;
  readonly ids: () => string;
  readonly instance: string;
}
