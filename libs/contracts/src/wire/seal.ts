import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Hash, Id, Version } from '../scalars.ts';
import { Ts } from '../time.ts';
import { wireMessage } from './wire.ts';

/** What the signature of a head is made over, as canonical JSON. */
export const ChainHead = z.strictObject({
  version: Version,
  namespaceId: Id,
  /** Records of the namespace up to here; the number of the last one, counted from 1. */
  count: z.int().min(1),
  /** Place of that record in the stream of records. */
  sequence: z.int().min(1),
  /** The chain's value after it. */
  chain: Hash,
  at: Ts,
  /** Which key signed. A verifier gets keys from whom it trusts, never from here. */
  keyId: Id,
});
export type ChainHead = z.infer<typeof ChainHead>;

/** A signed statement of all records of a namespace up to one of them; Ed25519, as base64url. */
export const SealedHead = z.strictObject({ head: ChainHead, signature: bounded(z.string(), 86, 86) });
export type SealedHead = z.infer<typeof SealedHead>;

export const SealedHeadMessage = wireMessage('audit.head/1', SealedHead);
