import {
  type AccessContext,
  type AuditEvent,
  type CapabilityRequirement,
  INFRASTRUCTURE_CODES,
  type Instant,
  type Json,
  type NoBasis,
  type Result,
  type Revision,
  Revision as RevisionText,
  Ts,
  err,
  instantOf,
  ok,
  positionOf,
} from '@sharedos/contracts';
import { z } from 'zod';

/** All that one recorded decision was computed from, beside the log: as its record states it. */
export interface DecisionBasis {
  /** Of its turn; `now` is the admission. */
  readonly context: AccessContext;
  readonly request: CapabilityRequirement;
  readonly mode: 'execute' | 'discover';
  readonly consume: boolean;
  readonly revision: Revision;
  readonly position: number;
  readonly admittedAt: Instant;
  readonly now: Instant;
  /** A decision outside a turn is made at the head of the log: it asks no counters and no live revocation. */
  readonly isOfTurn: boolean;
  /** Uses counted, by grant. */
  readonly usage: Readonly<Record<string, number>>;
  /** Of grants that are bound to a call, whether this was the call: the arguments are on no record, and what came of them is. */
  readonly fitsCall: (grantId: string) => boolean;
  /** At which revision live revocation was read, by the grant it was read for. */
  readonly revocationsAt: ReadonlyMap<string, Revision>;
}

const Stated = z.object({
  revision: RevisionText,
  admittedAt: Ts,
  consumed: z.boolean(),
  mode: z.literal('discover').optional(),
  turnId: z.string().optional(),
  usage: z.record(z.string(), z.int().min(0)).optional(),
  rejectedGrants: z.array(z.looseObject({ grantId: z.string(), reason: z.string() })).optional(),
  revocationChecks: z.array(z.looseObject({ grantId: z.string(), revision: RevisionText })).optional(),
});

/** Reads what a record says it was computed from. */
export const basisOf = (event: AuditEvent, storeId: string): Result<DecisionBasis, NoBasis> => {
  const { resource, action, namespaceId, actor, authority, owner, purpose, traceId, reason } = event;
  const stated = Stated.safeParse(event.metadata satisfies Json | undefined);
  if (!stated.success || resource === undefined || action === undefined) {
    const isOutage = event.outcome === 'denied' && reason !== undefined && INFRASTRUCTURE_CODES.has(reason);
    return err(isOutage ? 'outage' : 'not_stated');
  }
  const { revision, admittedAt, consumed, mode = 'execute', turnId, usage = {}, rejectedGrants = [], revocationChecks = [] } = stated.data;
  const uncovering = new Set(rejectedGrants.filter((rejection) => rejection.reason === 'capability').map(({ grantId }) => grantId));
  const position = positionOf(revision, storeId);
  if (position === undefined) return err('another_log');
  return ok({
    context: { namespaceId, actor, authority, owner, purpose, traceId, enabledToolNamespaces: [], now: admittedAt },
    request: { resource, action },
    mode,
    consume: consumed,
    revision,
    position,
    admittedAt: instantOf(admittedAt) ?? NaN,
    now: instantOf(event.at) ?? NaN,
    isOfTurn: turnId !== undefined,
    usage,
    fitsCall: (grantId) => (event.outcome === 'allowed' ? grantId === event.grantId : !uncovering.has(grantId)),
    revocationsAt: new Map(revocationChecks.map((check) => [check.grantId, check.revision])),
  });
};
