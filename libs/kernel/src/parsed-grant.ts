import { CapabilityGrant, type Result, type ToolCall, err, hashOf, jsonViolation, ok } from '@sharedos/contracts';
import { type WindowBounds, windowOf } from './window.ts';

declare const parsed: unique symbol;

/**
 * A grant that met its contract, with its times read once. Only {@link parseGrant} makes one, so whoever hands one over has
 * proof in its type that it was checked, and no flag that says "trust me".
 */
export interface ParsedGrant {
  readonly [parsed]: true;
  readonly grant: CapabilityGrant;
  readonly window: WindowBounds;
  /** The digest of the one call that it allows, where it is bound to one. */
  readonly boundTo?: string;
}

/** Reads one grant of a source. The value is a copy: a source that edits its own object later changes nothing here. */
export const parseGrant = (material: unknown): Result<ParsedGrant, 'invalid_grant_material'> => {
  // An `undefined` member passes an optional field of the schema but has no canonical JSON, so it could never be hashed.
  if (jsonViolation(material) !== undefined) return err('invalid_grant_material');
  const grant = CapabilityGrant.safeParse(material);
  if (!grant.success) return err('invalid_grant_material');
  return ok({ grant: grant.data, window: windowOf(grant.data) } as ParsedGrant);
};

/** The same grant, for one call alone. */
export const boundGrant = (held: ParsedGrant, callDigest: string): ParsedGrant => ({ ...held, boundTo: callDigest });

/** What a grant is bound to, of a call: its tool, and its arguments as the tool reads them. */
export const callDigestOf = ({ tool, arguments: given }: Pick<ToolCall, 'tool' | 'arguments'>): string =>
  hashOf({ tool, arguments: given });
