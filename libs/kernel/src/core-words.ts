import { type Address, hashOf, sameAddress, sha256 } from '@sharedos/contracts';

// Words of the contracts that users of the core API look for here, under the names they know.
export {
  type AccessContext,
  type AuditEvent,
  type AuthoritySnapshot,
  type AuthorizationRequest,
  type AuthorityUnavailableCode,
  type ResourceInvocationRequest,
  addressPath,
  canonicalJson,
} from '@sharedos/contracts';
export type { CapabilityRequestPayload } from '@sharedos/contracts';
export type { ConstraintField as ConstraintEnvelopeField } from './constraints.ts';

/** Equality of principals: the same kind and the same id. */
export const addressesEqual = (left: Address, right: Address): boolean => sameAddress(left, right);

/** SHA-256 of the canonical JSON of a value; the order of its keys does not matter. */
export const hashJson = async (value: unknown): Promise<string> => hashOf(value);

/** SHA-256 of the UTF-8 bytes of a text, as lower-case hex. */
export const sha256Hex = async (value: string): Promise<string> => sha256(value);
