import { z } from 'zod';
import { bounded } from './bounded.ts';
import { JsonObj } from './json.ts';
import { Address } from './principals.ts';
import { Action, Id, Path, Purpose, Scope } from './scalars.ts';
import { Ts, instantOf } from './time.ts';

/** A resource; an absent owner means "the owner named by the context that presents it". */
export const ResourceRef = z.strictObject({ namespace: Id, path: Path, owner: Address.optional() });
export type ResourceRef = z.infer<typeof ResourceRef>;

export const Capability = z.strictObject({ resource: ResourceRef, actions: bounded(z.array(Action), 1, 64), scope: Scope });
export type Capability = z.infer<typeof Capability>;

/** What one operation needs, and what an authorization is asked for. */
export const CapabilityRequirement = z.strictObject({ resource: ResourceRef, action: Action });
export type CapabilityRequirement = z.infer<typeof CapabilityRequirement>;
export const AuthorizationRequest = CapabilityRequirement;
export type AuthorizationRequest = CapabilityRequirement;

/**
 * The label of a grant that a precedent answered for, by which all that one matcher decided can be found and revoked. It confers
 * nothing.
 */
export const AutoDecided = z.strictObject({
  matcher: Id,
  citedRequestIds: bounded(z.array(Id), 1),
  match: z.enum(['exact', 'fuzzy']),
});
export type AutoDecided = z.infer<typeof AutoDecided>;

/** What is noted on a grant; never authority. The key `autoDecided` is reserved: whoever selects by it can rely on its shape. */
export const GrantMetadata = JsonObj.refine(
  ({ autoDecided }) => autoDecided === undefined || AutoDecided.safeParse(autoDecided).success,
  'autoDecided must be the label of a decision by precedent',
).meta({ type: 'object' }) as typeof JsonObj;

const Count = z.int().max(Number.MAX_SAFE_INTEGER);

/** Bounds of a grant; an absent one does not bound, except `delegationDepth`, which then permits no delegation. */
export const CapabilityConstraints = z
  .strictObject({
    purposes: bounded(z.array(Purpose), 1, 64).optional(),
    notBefore: Ts.optional(),
    expiresAt: Ts.optional(),
    maxUses: Count.min(1).optional(),
    delegationDepth: Count.min(0).optional(),
  })
  .refine(
    ({ notBefore, expiresAt }) =>
      notBefore === undefined || expiresAt === undefined || (instantOf(notBefore) ?? NaN) <= (instantOf(expiresAt) ?? NaN),
    'notBefore must not be after expiresAt',
  );
export type CapabilityConstraints = z.infer<typeof CapabilityConstraints>;

/** Authority, as issued. @see spec/contracts.md §1, "CapabilityGrant" */
export const CapabilityGrant = z
  .strictObject({
    id: Id,
    namespaceId: Id,
    subject: Address,
    issuer: Address,
    capabilities: bounded(z.array(Capability), 1, 64),
    constraints: CapabilityConstraints,
    issuedAt: Ts,
    revokedAt: Ts.optional(),
    parentGrantId: Id.optional(),
    metadata: GrantMetadata.optional(),
  })
  .refine((grant) => grant.parentGrantId !== grant.id, 'a grant cannot be its own parent');
export type CapabilityGrant = z.infer<typeof CapabilityGrant>;

/** Wanted authority, described. It confers nothing and is no input of a decision. */
export const CapabilityRequest = z.strictObject({
  id: Id,
  namespaceId: Id,
  requester: Address,
  owner: Address,
  requestedAt: Ts,
  capabilities: bounded(z.array(Capability), 1, 64),
  purpose: Purpose,
  constraints: CapabilityConstraints.optional(),
  metadata: JsonObj.optional(),
});
export type CapabilityRequest = z.infer<typeof CapabilityRequest>;

export const CapabilityRequestPayload = CapabilityRequest.pick({ capabilities: true, purpose: true, constraints: true, metadata: true });
export type CapabilityRequestPayload = z.infer<typeof CapabilityRequestPayload>;
