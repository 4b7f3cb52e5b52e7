import { z } from 'zod';
import { bounded } from './bounded.ts';
import { CapabilityRequest } from './grants.ts';
import { JsonObj } from './json.ts';
import { Address } from './principals.ts';
import { Action, Hash, Id, Path, Purpose, Scope } from './scalars.ts';
import { Ts } from './time.ts';

const unique = (names: readonly string[]): boolean => new Set(names).size === names.length;

/** Identifiers that must differ from each other after trimming. */
export const UniqueIds = (max: number, min = 0) => bounded(z.array(Id), min, max).refine(unique, 'must be unique');

/** The trusted frame of an operation, built by a service from authenticated state. It carries no grants. */
export const AccessContext = z.strictObject({
  namespaceId: Id,
  actor: Address,
  authority: Address,
  owner: Address,
  purpose: Purpose,
  traceId: Id,
  enabledToolNamespaces: UniqueIds(256),
  now: Ts,
});
export type AccessContext = z.infer<typeof AccessContext>;

export const AuthorizationDecision = z.strictObject({
  allowed: z.boolean(),
  reasonCode: Id,
  matchedGrantId: Id.optional(),
  requiredAuthority: CapabilityRequest.optional(),
  metadata: JsonObj.optional(),
});
export type AuthorizationDecision = z.infer<typeof AuthorizationDecision>;

/** Why authority could not be trusted; for the host alone, callers hear `authority_unavailable`. */
export const AuthorityUnavailableCode = z.enum([
  'grant_source_failed',
  'invalid_grant_material',
  'grant_scope_mismatch',
  'grant_limit_exceeded',
]);
export type AuthorityUnavailableCode = z.infer<typeof AuthorityUnavailableCode>;

export const ScopeMismatch = z.strictObject({ grantId: Id, reason: z.enum(['namespace', 'subject', 'issuer']) });
export type ScopeMismatch = z.infer<typeof ScopeMismatch>;

/** What a turn holds, named without its grants. `grantIds` are sorted. */
export const AuthoritySnapshot = z.strictObject({ hash: Hash, grantIds: z.array(Id), grantCount: z.int().min(0), loadedAt: Ts });
export type AuthoritySnapshot = z.infer<typeof AuthoritySnapshot>;

export const ResourceReach = z.strictObject({ namespace: Id, path: Path, actions: bounded(z.array(Action), 1, 64), scope: Scope });
export type ResourceReach = z.infer<typeof ResourceReach>;

export const ReachList = bounded(z.array(ResourceReach), 0, 16_384);

/** Where an authority operates. Information only: no check ever reads it. */
export const ReachResult = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('computed'), reach: ReachList }),
  z.strictObject({ status: z.literal('unavailable'), reasonCode: z.enum(['authority_unavailable', 'usage_store_unavailable']) }),
]);
export type ReachResult = z.infer<typeof ReachResult>;

/** Codes that mean "we could not find out": marked fail-closed, left out of denial rates. @see spec/reason-codes.md §1 */
export const INFRASTRUCTURE_CODES: ReadonlySet<string> = new Set([
  'authority_unavailable',
  'delegation_chain_unverified',
  'usage_store_unavailable',
  'host_policy_unavailable',
  'audit_unavailable',
  'replay_unavailable',
]);
