import { type KeyObject, verify } from 'node:crypto';
import type { SignatureCheck } from './audit-chain.ts';
import { canonicalJson } from './canonical.ts';
import type { ChainHead } from './wire/seal.ts';

/** A key of the audit proof as it is written down: an id, and DER as base64url. */
export interface NamedKey {
  readonly keyId: string;
  readonly der: string;
}

const NAMED_KEY = /^([A-Za-z0-9_.-]{1,64}):([A-Za-z0-9_-]+)$/;

/** Reads one `id:key` of a list of them. @returns `undefined` for anything else. */
export const namedKeyOf = (entry: string): NamedKey | undefined => {
  const [, keyId, der] = NAMED_KEY.exec(entry.trim()) ?? [];
  return keyId === undefined || der === undefined ? undefined : { keyId, der };
};

/** What the signature of a head is made over. */
export const signedBytes = (head: ChainHead): Uint8Array => Buffer.from(canonicalJson(head));

/** Whether one of these Ed25519 keys signed a head: the one that the head names, and no other. */
export const signatureCheck =
  (keys: ReadonlyMap<string, KeyObject>): SignatureCheck =>
  (head, signature) => {
    const key = keys.get(head.keyId);
    if (key === undefined) return 'unknown_key';
    return verify(null, signedBytes(head), key, Buffer.from(signature, 'base64url')) ? 'valid' : 'invalid';
  };
