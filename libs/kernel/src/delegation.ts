import {
  type Address,
  type Capability,
  CapabilityGrant,
  type CapabilityConstraints,
  type JsonObj,
  instantOf,
  sameAddress,
} from '@sharedos/contracts';
import { constraintEnvelopeViolation } from './constraints.ts';
import { ANY_ACTION, type OwnerFrame, ownersAgree } from './matching.ts';
import { isAtOrBelow, samePath } from './paths.ts';

/**
 * Whether everything that `inner` covers is covered by `outer`, for a context with this owner.
 *
 * @see spec/authorization.md §9.3
 */
export const capabilityIsWithin = (inner: Capability, outer: Capability, frame: OwnerFrame): boolean =>
  ownersAgree(inner.resource.owner, outer.resource.owner, frame) && shapeIsWithin(inner, outer);

/**
 * The same for every context at once, which is what issuing needs: an owner may be neither pinned onto an unowned capability
 * nor dropped from an owned one, because either would differ from the parent in some context.
 */
export const capabilityIsWithinEverywhere = (inner: Capability, outer: Capability): boolean => {
  const mine = inner.resource.owner;
  const theirs = outer.resource.owner;
  const sameOwner = mine === undefined || theirs === undefined ? mine === theirs : sameAddress(mine, theirs);
  return sameOwner && shapeIsWithin(inner, outer);
};

const shapeIsWithin = (inner: Capability, outer: Capability): boolean =>
  inner.resource.namespace === outer.resource.namespace &&
  (outer.actions.includes(ANY_ACTION) || inner.actions.every((action) => outer.actions.includes(action))) &&
  (outer.scope === 'exact'
    ? inner.scope === 'exact' && samePath(inner.resource.path, outer.resource.path)
    : isAtOrBelow(inner.resource.path, outer.resource.path));

/** What a holder asks to pass on. Namespace, issuer and parent are written by the rule. */
export interface DeriveGrantRequest {
  readonly id: string;
  readonly subject: Address;
  readonly capabilities: readonly Capability[];
  readonly issuedAt: string;
  readonly constraints?: CapabilityConstraints | undefined;
  readonly metadata?: JsonObj | undefined;
}

export type DelegationRefusal =
  | 'empty_capabilities'
  | 'id_collides_with_parent'
  | 'bounded_parent_not_delegable'
  | 'parent_not_delegable'
  | 'depth_exhausted'
  | 'capability_not_within_parent'
  | 'purpose_not_within_parent'
  | 'window_not_within_parent'
  | 'issued_before_parent';

export type DeriveGrantResult =
  | { readonly ok: true; readonly grant: CapabilityGrant }
  | { readonly ok: false; readonly reason: DelegationRefusal };

export interface DeriveOptions {
  /** Whether a bounded grant may be passed on; what is below it then shares its budget. Off when absent. */
  readonly sharedBudgets?: boolean;
}

/**
 * Passes on part of a grant. It refuses and never clamps, so what was asked is what is issued; the first failure answers.
 * Bounds that the request leaves out are inherited and written out, because at use an omission counts as a widening.
 *
 * Not checked here: that the parent is active, and that the asker holds it.
 *
 * @returns The derived grant, or the code of the first rule broken. A result that is no grant, a start after its end among
 *   others, is refused as `window_not_within_parent`.
 * @see spec/authorization.md §9.1
 */
export const deriveGrant = (
  parent: CapabilityGrant,
  request: DeriveGrantRequest,
  { sharedBudgets = false }: DeriveOptions = {},
): DeriveGrantResult => {
  const asked = request.constraints ?? {};
  const parentDepth = parent.constraints.delegationDepth ?? 0;
  if (request.capabilities.length === 0) return refused('empty_capabilities');
  if (request.id === parent.id) return refused('id_collides_with_parent');
  if (parent.constraints.maxUses !== undefined && !sharedBudgets) return refused('bounded_parent_not_delegable');
  if (parentDepth <= 0) return refused('parent_not_delegable');
  if (asked.delegationDepth !== undefined && asked.delegationDepth > parentDepth - 1) return refused('depth_exhausted');
  // Each requested capability inside one parent capability: never assembled from several.
  const allHeld = request.capabilities.every((inner) => parent.capabilities.some((outer) => capabilityIsWithinEverywhere(inner, outer)));
  if (!allHeld) return refused('capability_not_within_parent');

  const purposes = asked.purposes ?? parent.constraints.purposes;
  const notBefore = asked.notBefore ?? parent.constraints.notBefore;
  const expiresAt = asked.expiresAt ?? parent.constraints.expiresAt;
  const constraints: CapabilityConstraints = {
    ...(purposes === undefined ? {} : { purposes }),
    ...(notBefore === undefined ? {} : { notBefore }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(asked.maxUses === undefined ? {} : { maxUses: asked.maxUses }),
    delegationDepth: asked.delegationDepth ?? parentDepth - 1,
  };
  const escaped = constraintEnvelopeViolation(constraints, parent.constraints);
  if (escaped !== undefined) return refused(escaped === 'purposes' ? 'purpose_not_within_parent' : 'window_not_within_parent');
  if (!isNotBefore(request.issuedAt, parent.issuedAt)) return refused('issued_before_parent');

  const derived = CapabilityGrant.safeParse({
    id: request.id,
    namespaceId: parent.namespaceId,
    subject: request.subject,
    issuer: parent.subject,
    capabilities: request.capabilities,
    constraints,
    issuedAt: request.issuedAt,
    parentGrantId: parent.id,
    ...(request.metadata === undefined ? {} : { metadata: request.metadata }),
  });
  return derived.success ? { ok: true, grant: derived.data } : refused('window_not_within_parent');
};

const refused = (reason: DelegationRefusal): DeriveGrantResult => ({ ok: false, reason });

/** False when either cannot be read. */
const isNotBefore = (text: string, other: string): boolean => (instantOf(text) ?? NaN) >= (instantOf(other) ?? NaN);
