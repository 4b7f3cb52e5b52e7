import { createHmac, timingSafeEqual } from 'node:crypto';
import { Hash, Id, type Instant, type Result, Ts, bounded, canonicalJson, err, instantOf, ok, parseJsonText } from '@sharedos/contracts';
import { z } from 'zod';
import { ContractError } from '../errors.ts';

const SessionClaims = z.strictObject({
  executionId: Id,
  namespaceId: Id,
  /** `<kind>:<id>` */
  actor: bounded(z.string(), 1, 512),
  catalogHash: Hash,
  expiresAt: Ts,
});
/** Which session a token is for. Holding one locates a session; it permits nothing that the session does not. */
export type SessionClaims = z.infer<typeof SessionClaims>;

export type SessionTokenRefusal = 'malformed' | 'signature_mismatch' | 'expired' | 'claims_mismatch';

const KEY_BYTES_MIN = 32;
const TOKEN_LENGTH_MAX = 8_192;
const SHAPE = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

/** `base64url(canonical JSON of the claims) . base64url(HMAC-SHA256 of that text)`. @throws ContractError for claims or a key that are none. */
export const mintSessionToken = (given: SessionClaims, key: Uint8Array): string => {
  const claims = SessionClaims.safeParse(given);
  if (!claims.success) throw new ContractError('session claims', claims.error.message);
  const payload = Buffer.from(canonicalJson(claims.data), 'utf8').toString('base64url');
  return `${payload}.${signed(payload, key)}`;
};

/**
 * Judges a token that somebody presented, in this order: its shape, its signature, what it claims, until when, and for which session.
 *
 * @param expected What the session it came to is.
 * @see spec/runtimes.md §5, "Session token"
 */
export const verifySessionToken = (
  token: string,
  { key, now, expected }: { readonly key: Uint8Array; readonly now: Instant; readonly expected: Omit<SessionClaims, 'expiresAt'> },
): Result<SessionClaims, SessionTokenRefusal> => {
  const [, payload, signature] = token.length <= TOKEN_LENGTH_MAX ? (SHAPE.exec(token) ?? []) : [];
  if (payload === undefined || signature === undefined) return err('malformed');
  // The texts are compared and not the bytes they stand for: a signature has one spelling.
  if (!timingSafeEqual(Buffer.from(signature), Buffer.from(signed(payload, key)))) return err('signature_mismatch');
  const text = parseJsonText(Buffer.from(payload, 'base64url').toString('utf8'));
  const claims = SessionClaims.safeParse(text.ok ? text.value : undefined);
  if (!claims.success) return err('malformed');
  // Written so that an end that cannot be read has passed.
  if (!(now < (instantOf(claims.data.expiresAt) ?? NaN))) return err('expired');
  const { expiresAt: _, ...session } = claims.data;
  return canonicalJson(session) === canonicalJson(expected) ? ok(claims.data) : err('claims_mismatch');
};

const signed = (payload: string, key: Uint8Array): string => {
  if (key.byteLength < KEY_BYTES_MIN) throw new ContractError('session key', `it has fewer than ${KEY_BYTES_MIN} bytes`);
  return createHmac('sha256', key).update(payload).digest('base64url');
};
