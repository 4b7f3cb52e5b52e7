import { createHmac, timingSafeEqual } from 'node:crypto';
import { type AccessContext, Hash, Id, Revision, type Result, Ts, canonicalJson, err, hashOf, instantOf, ok } from '@sharedos/contracts';
import { z } from 'zod';

/** What an open promised: this turn, of this context, sees the log as of this revision and is admitted at this instant. */
const Claims = z.strictObject({ turnId: Id, contextHash: Hash, revision: Revision, admittedAt: Ts, validUntil: Ts });
export type TurnClaims = z.infer<typeof Claims>;

export type TokenRefusal = 'malformed' | 'signature_mismatch' | 'context_mismatch' | 'expired';

/** Identity of a context for the length of a turn: everything but `now`, which moves. */
export const contextHash = ({ now: _, ...identity }: AccessContext): string => hashOf(identity);

/** Signs turns so that any replica answers for a turn that another one opened. */
export class TurnTokens {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  sign(claims: TurnClaims): string {
    const payload = Buffer.from(canonicalJson(claims), 'utf8').toString('base64url');
    return `${payload}.${this.#mac(payload)}`;
  }

  /** Signature before claims, in constant time; then the context it was opened for, then its end. */
  verify(token: string, context: AccessContext, now: number): Result<TurnClaims, TokenRefusal> {
    const [payload, mac, ...more] = token.split('.');
    if (payload === undefined || mac === undefined || more.length > 0) return err('malformed');
    const expected = Buffer.from(this.#mac(payload));
    const given = Buffer.from(mac);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return err('signature_mismatch');
    const claims = Claims.parse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
    if (claims.contextHash !== contextHash(context)) return err('context_mismatch');
    return now >= (instantOf(claims.validUntil) ?? 0) ? err('expired') : ok(claims);
  }

  #mac(payload: string): string {
    return createHmac('sha256', this.#secret).update(payload).digest('base64url');
  }
}
