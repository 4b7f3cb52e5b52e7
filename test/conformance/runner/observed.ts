import type { AuditEvent, CapabilityRequest } from '@sharedos/contracts';
import type { Bag } from './case.ts';

/** What one step gave: what its caller receives, and what was recorded while it ran. */
export interface Observed {
  readonly received: Bag;
  readonly audit: readonly AuditEvent[];
  readonly counts: Bag;
  /** By the name that the stage gives a grant's counter. */
  readonly usage: ReadonlyMap<string, number>;
  readonly hash?: string | undefined;
  readonly requestId?: string | undefined;
}

/** What a step gave, with the identities that expectations compare. */
export const observedOf = (received: Bag, recorded: Pick<Observed, 'audit' | 'counts' | 'usage'>): Observed => {
  const escalation = received['escalation'] as { readonly requestedAuthority?: CapabilityRequest } | undefined;
  const request = (received['requiredAuthority'] ?? received['request'] ?? escalation?.requestedAuthority) as
    | CapabilityRequest
    | null
    | undefined;
  return {
    received,
    ...recorded,
    hash:
      (received['hash'] as string | undefined) ??
      recorded.audit.findLast(({ authorityHash }) => authorityHash !== undefined)?.authorityHash,
    requestId: request?.id,
  };
};

const outcomeOf = ({ allowed, status }: Bag): string => (typeof allowed === 'boolean' ? (allowed ? 'allowed' : 'denied') : String(status));

/** How many of several answers ended each way. */
export const outcomesOf = (answers: readonly Bag[]): Readonly<Record<string, number>> => {
  const outcomes: Record<string, number> = {};
  for (const received of answers) {
    const outcome = outcomeOf(received);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  return outcomes;
};
