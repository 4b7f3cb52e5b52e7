import { type Address, type Capability, type CapabilityRequirement, sameAddress } from '@sharedos/contracts';
import { isAtOrBelow, samePath } from './paths.ts';

/** Whose resources an absent owner means. Any access context is one. */
export interface OwnerFrame {
  readonly owner: Address;
}

/** The one action that covers every other, and only where a capability lists it. */
export const ANY_ACTION = '*';

/** An absent owner means the owner that the trusted context names, so an unowned capability follows that context. */
export const ownersAgree = (a: Address | undefined, b: Address | undefined, frame: OwnerFrame): boolean =>
  sameAddress(a ?? frame.owner, b ?? frame.owner);

/**
 * Whether one capability, judged whole, covers a request. Nothing but a listed `*` expands: `snapshot:*` is an ordinary action,
 * and a request for `*` needs a capability that lists it.
 *
 * @see spec/authorization.md §4
 */
export const capabilityMatches = (capability: Capability, request: CapabilityRequirement, frame: OwnerFrame): boolean =>
  sharesKind(capability, request, frame) &&
  (capability.scope === 'exact'
    ? samePath(request.resource.path, capability.resource.path)
    : isAtOrBelow(request.resource.path, capability.resource.path));

/**
 * Whether a capability reaches anything that a tool with this declared ceiling could be called for. It reveals the tool; each
 * call is still decided on its exact resource.
 *
 * @see spec/authorization.md §4, "Discovery matching"
 */
export const capabilityIntersectsCeiling = (capability: Capability, ceiling: CapabilityRequirement, frame: OwnerFrame): boolean =>
  sharesKind(capability, ceiling, frame) &&
  (isAtOrBelow(capability.resource.path, ceiling.resource.path) ||
    (capability.scope === 'descendants' && isAtOrBelow(ceiling.resource.path, capability.resource.path)));

const sharesKind = (capability: Capability, request: CapabilityRequirement, frame: OwnerFrame): boolean =>
  capability.resource.namespace === request.resource.namespace &&
  (capability.actions.includes(request.action) || capability.actions.includes(ANY_ACTION)) &&
  ownersAgree(capability.resource.owner, request.resource.owner, frame);
