import {
  type AccessContext,
  type Address,
  type AuditEvent,
  type AuditOutcome,
  type AuditType,
  type CapabilityRequest,
  type CapabilityRequirement,
  INFRASTRUCTURE_CODES,
  type Instant,
  type Json,
  type JsonObj,
  type OperationOutcome,
  PROTOCOL_VERSION,
  type ResourceRef,
  type Ts,
  timestampOf,
} from '@sharedos/contracts';
import type { AuthorityFailure, PolicyResolution, HeldAuthority } from './authority.ts';
import { toolCatalogHash } from './catalog.ts';
import type { Decided } from './decide.ts';
import type { AdmittedPrecedent } from './precedent.ts';

/** Who and under what: the part of an access context that every record carries. */
export type AuditFrame = Pick<AccessContext, 'namespaceId' | 'actor' | 'authority' | 'owner' | 'purpose' | 'traceId'>;

/** What is stated of a record from outside: its id, minted once and reused by a retry, and the `now` of the emitting call. */
export interface AuditMark {
  readonly id: string;
  /** As text, it stands as it was written: a `now` that cannot be read is recorded and not replaced. */
  readonly at: Instant | Ts;
  readonly context: AuditFrame;
  readonly place?: AuditPlace | undefined;
}

/**
 * Where in the system's history the record stands (design.md §7).
 * `order` counts the records of one turn; `usage` the uses seen of each bounded grant that was asked about.
 */
export interface AuditPlace {
  readonly revision?: string | undefined;
  /** The instant `A` that the turn was admitted at; with the revision, the instant and the request of a decision, all it was computed from. */
  readonly admittedAt?: Ts | undefined;
  readonly turnId?: string | undefined;
  readonly order?: number | undefined;
  readonly usage?: Readonly<Record<string, number>> | undefined;
}

type Own = Omit<Partial<AuditEvent>, 'id' | 'at' | 'metadata' | 'type' | 'outcome'>;

/** Members set to `undefined` are left out: no record may hold one. */
const record = (
  { id, at, context, place }: AuditMark,
  type: AuditType,
  outcome: AuditOutcome,
  own: Undefinable<Own>,
  metadata: Facts,
): AuditEvent => {
  const { namespaceId, actor, authority, owner, purpose, traceId } = context;
  return stated({
    version: PROTOCOL_VERSION,
    id,
    type,
    outcome,
    at: typeof at === 'string' ? at : timestampOf(at),
    traceId,
    namespaceId,
    actor,
    authority,
    owner,
    purpose,
    ...own,
    metadata: stated({ ...metadata, ...place }),
  }) as AuditEvent;
};

type Undefinable<T> = { readonly [K in keyof T]: T[K] | undefined };
type Facts = Readonly<Record<string, Json | undefined>>;

const stated = (facts: Readonly<Record<string, unknown>>): JsonObj =>
  Object.fromEntries(Object.entries(facts).filter(([, fact]) => fact !== undefined)) as JsonObj;

const failClosed = (code: string | undefined): true | undefined =>
  code !== undefined && INFRASTRUCTURE_CODES.has(code) ? true : undefined;

export interface HostPorts {
  readonly hostCeiling: 'installed' | 'absent';
  readonly policy: PolicyResolution | undefined;
}

const hostPorts = ({ hostCeiling, policy }: HostPorts): Facts => ({ hostCeiling, hostPolicy: policy?.status ?? 'absent' });

/** One load of authority, whether or not it could be trusted. */
export const authorityResolved = (
  mark: AuditMark,
  load: { readonly authority: Pick<HeldAuthority, 'snapshot'> } | { readonly failure: AuthorityFailure },
  ports: HostPorts,
): AuditEvent => {
  if ('authority' in load) {
    const { hash, grantIds, grantCount } = load.authority.snapshot;
    return record(mark, 'authority.resolved', 'succeeded', { authorityHash: hash }, { grantIds, grantCount, ...hostPorts(ports) });
  }
  const { code, detail } = load.failure;
  const rejectedGrants = detail === undefined ? undefined : [detail];
  return record(
    mark,
    'authority.resolved',
    'failed',
    { reason: 'authority_unavailable' },
    { failClosed: true, authority: code, rejectedGrants, ...hostPorts(ports) },
  );
};

/** Keys that the kernel states of a decision. A port's metadata may not speak in their place. */
const KERNEL_FACTS = new Set([
  ...['consumed', 'failClosed', 'usageTaken', 'grantsResolved', 'rejectedGrants', 'missingDependency', 'source', 'cause'],
  ...['mode', 'revision', 'admittedAt', 'turnId', 'order', 'usage'],
]);

/**
 * One decision. `consumed` says that the check was of the consuming kind, on denials too; only `usageTaken` says that a use
 * was really taken.
 */
export const authorizationChecked = (
  mark: AuditMark,
  decision: {
    readonly request: CapabilityRequirement;
    readonly decided: Decided;
    readonly consume: boolean;
    /** Said of a discovery alone; any other decision was about execution. */
    readonly mode?: 'discover' | undefined;
    readonly authorityHash?: string | undefined;
    /** The tool call decided on. */
    readonly operationId?: string | undefined;
  },
): AuditEvent => {
  const { request, decided, consume, mode, authorityHash, operationId } = decision;
  const { allowed, reasonCode, matchedGrantId, metadata } = decided.decision;
  const explanation = allowed ? undefined : decided.explanation;
  return record(
    mark,
    'authorization.checked',
    allowed ? 'allowed' : 'denied',
    {
      resource: request.resource,
      action: request.action,
      authorityHash,
      operationId,
      grantId: matchedGrantId,
      reason: allowed ? undefined : reasonCode,
    },
    {
      ...Object.fromEntries(Object.entries(metadata ?? {}).filter(([key]) => !KERNEL_FACTS.has(key))),
      consumed: consume,
      mode,
      failClosed: failClosed(reasonCode),
      usageTaken: decided.usageTaken === undefined ? undefined : true,
      grantsResolved: explanation?.grantsResolved,
      rejectedGrants: explanation?.rejections.map(({ grantId, reason }) => ({ grantId, reason })),
      missingDependency: explanation?.missingDependency,
    },
  );
};

/** One listing. No tool names: a record must not become a directory. */
export const toolCatalogListed = (
  mark: AuditMark,
  listing: { readonly enabledNamespaces: readonly string[] } & (
    | {
        readonly authorityHash: string;
        readonly catalogHash: string;
        readonly withheldCount: number;
        /** Whether an outage, and not a rule, withheld some of them. */
        readonly withheldByOutage: boolean;
        readonly hostPolicyVersion?: string | undefined;
      }
    | { readonly failure: AuthorityFailure }
  ),
): AuditEvent => {
  const { enabledNamespaces } = listing;
  if ('failure' in listing) {
    return record(
      mark,
      'tool.catalog.listed',
      'denied',
      { reason: 'authority_unavailable' },
      {
        catalogHash: toolCatalogHash([]),
        enabledNamespaces,
        withheldCount: 0,
        failClosed: true,
        authority: listing.failure.code,
        source: 'kernel',
      },
    );
  }
  return record(
    mark,
    'tool.catalog.listed',
    'succeeded',
    { authorityHash: listing.authorityHash },
    {
      catalogHash: listing.catalogHash,
      enabledNamespaces,
      hostPolicyVersion: listing.hostPolicyVersion,
      withheldCount: listing.withheldCount,
      failClosed: listing.withheldByOutage ? true : undefined,
      source: 'kernel',
    },
  );
};

/** One reading of the families of tools, by the management plane. Here `enabledNamespaces` is a number. */
export const toolNamespaceCatalogListed = (
  mark: AuditMark,
  { total, enabled }: { readonly total: number; readonly enabled: number },
): AuditEvent => record(mark, 'tool.namespace.catalog.listed', 'succeeded', {}, { totalNamespaces: total, enabledNamespaces: enabled });

/** A selection that took effect: the families that are on and registered. */
export const toolNamespaceSelectionUpdated = (mark: AuditMark, enabledNamespaces: readonly string[]): AuditEvent =>
  record(mark, 'tool.namespace.selection.updated', 'succeeded', {}, { enabledNamespaces });

/** How one operation on a resource ended. */
export const resourceInvoked = (
  mark: AuditMark,
  operation: {
    readonly operationId: string;
    readonly resource: ResourceRef;
    readonly action: string;
    readonly outcome: 'succeeded' | 'denied' | 'failed';
    readonly grantId?: string | undefined;
    readonly reason?: string | undefined;
  },
): AuditEvent => {
  const { outcome, ...own } = operation;
  return record(mark, 'resource.invoked', outcome, own, { source: 'kernel' });
};

/** How one call ended, in the code its caller heard. `cause` is what was really the matter, where that code hides it. */
export const toolInvoked = (
  mark: AuditMark,
  call: {
    readonly operationId: string;
    readonly tool: string;
    readonly outcome: 'succeeded' | 'denied' | 'failed';
    readonly reason?: string | undefined;
    readonly source: 'kernel' | 'envelope';
    readonly cause?: string | undefined;
    readonly resource?: ResourceRef | undefined;
    readonly action?: string | undefined;
    readonly grantId?: string | undefined;
    readonly catalogHash?: string | undefined;
  },
): AuditEvent => {
  const { outcome, source, cause, catalogHash: offered, ...own } = call;
  return record(mark, 'tool.invoked', outcome, own, { source, cause, failClosed: failClosed(call.reason), catalogHash: offered });
};

/** Uses of one decision, given back because what it allowed never started. */
export const usageReleased = (
  mark: AuditMark,
  { grantId, operationId }: { readonly grantId: string; readonly operationId?: string | undefined },
): AuditEvent =>
  record(
    mark,
    'grant.usage.released',
    'succeeded',
    { grantId, operationId, reason: 'pre_admission_release' },
    { source: 'kernel', usageState: 'released' },
  );

/** One delivery. Accepted and delivered both succeeded. */
export const messageSent = (
  mark: AuditMark,
  delivery: {
    readonly messageId: string;
    readonly receiver: Address;
    readonly outcome: 'succeeded' | 'denied' | 'failed';
    readonly operationId?: string | undefined;
    readonly grantId?: string | undefined;
    readonly reason?: string | undefined;
  },
): AuditEvent => {
  const { outcome, ...own } = delivery;
  return record(mark, 'message.sent', outcome, own, { source: 'kernel' });
};

/** A turn asked for a human. The reviewer is assumed to be the owner; nothing is granted. */
export const escalationRequested = (
  mark: AuditMark,
  escalation: {
    readonly detail: string;
    readonly reviewer: Address;
    readonly operationId?: string | undefined;
    readonly requestedAuthority?: CapabilityRequest | undefined;
  },
): AuditEvent => {
  const { detail, reviewer, operationId, requestedAuthority } = escalation;
  return record(
    mark,
    'escalation.requested',
    'escalated',
    { reason: 'escalation_requested', operationId, requestedAuthority },
    { detail, reviewer: { ...reviewer }, reviewerAssumed: true, resolution: 'pending' },
  );
};

/** A precedent answered an escalation. Written by the control plane under its own context, before anything is issued. */
export const escalationAutoDecided = (
  mark: AuditMark,
  { allowed, metadata, ...rest }: AdmittedPrecedent,
  requestId: string,
): AuditEvent => {
  const reason = 'narrowed' in rest && rest.narrowed ? 'auto_allow_narrowed' : undefined;
  return record(mark, 'escalation.auto_decided', allowed ? 'allowed' : 'denied', { reason }, { ...metadata, requestId });
};

/** The one terminal record of a turn. A cancelled turn is written as failed: there is no cancelled outcome. */
export const turnEnded = (
  mark: AuditMark,
  turn: {
    readonly executionId: string;
    readonly status: 'succeeded' | 'denied' | 'failed' | 'cancelled' | 'escalated';
    readonly code?: string | undefined;
    readonly endedBy?: 'envelope' | 'runtime' | undefined;
  },
): AuditEvent => {
  const { executionId, status, code, endedBy } = turn;
  const outcome = status === 'cancelled' ? 'failed' : status;
  const reason = status === 'cancelled' ? (code ?? 'turn_cancelled') : outcome === 'denied' || outcome === 'failed' ? code : undefined;
  return record(
    mark,
    'turn.ended',
    outcome,
    { operationId: executionId, reason },
    // A runtime may fail with any code it likes; only what the envelope says is an outage is one.
    { source: 'envelope', endedBy, failClosed: endedBy === 'runtime' ? undefined : failClosed(reason) },
  );
};

/** An act of the management plane. Its principal acts for itself, over what is its own. */
export interface AdminAct {
  readonly id: string;
  readonly at: Instant;
  readonly namespaceId: string;
  readonly principal: Address;
  readonly traceId: string;
  /** The verb of its subject, such as `grant.revoke`. */
  readonly command: string;
  readonly commandId?: string | undefined;
  /** The grant acted on. */
  readonly grantId?: string | undefined;
  /** What else was acted on: a resource of the management plane. */
  readonly resource?: ResourceRef | undefined;
  /** Its name, where the resource has many of a kind. */
  readonly about?: string | undefined;
  /** What an operator says became of an operation. */
  readonly found?: OperationOutcome | undefined;
  readonly place?: AuditPlace | undefined;
}

/** What acts of the management plane are for; the resource namespace that their authority lies in. */
export const ADMIN_PURPOSE = 'sharedos.admin';

export const adminChanged = (act: AdminAct): AuditEvent => adminRecord(act, 'admin.changed', 'succeeded', undefined);

export const adminRefused = (act: AdminAct, reason: string): AuditEvent => adminRecord(act, 'admin.refused', 'denied', reason);

const adminRecord = (act: AdminAct, type: AuditType, outcome: AuditOutcome, reason: string | undefined): AuditEvent => {
  const { id, at, namespaceId, principal, traceId, command, commandId, grantId, resource, about, found, place } = act;
  const context = { namespaceId, actor: principal, authority: principal, owner: principal, purpose: ADMIN_PURPOSE, traceId };
  return record(
    { id, at, context, place },
    type,
    outcome,
    { action: command, operationId: commandId, grantId, resource, reason },
    { about, found, failClosed: failClosed(reason) },
  );
};
