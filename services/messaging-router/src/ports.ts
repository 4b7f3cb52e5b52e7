import type { AuthorityClient, Bus } from '@sharedos/bus';
import type { Instant } from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';

/** What the messaging-router runs on. */
export interface Ports {
  readonly bus: Bus;
  readonly authority: AuthorityClient;
  readonly ledger: Ledger;
  readonly clock: () => Instant;
  readonly ids: () => string;
  readonly instance: string;
}

export const refused = (code: string, message: string, retryable = false) => ({ ok: false, error: { code, message, retryable } }) as const;
