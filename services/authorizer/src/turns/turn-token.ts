import { createHmac, timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type AccessContext, Hash, Id, Revision, type Result, Ts, canonicalJson, err, hashOf, instantOf, ok } from '@sharedos/contracts';
import { z } from 'zod';

/** What an open promised: this turn, of this context, sees the log as of this revision and is admitted at this instant. */
const Claims = z.strictObject({ turnId: Id, contextHash: Hash, revision: Revision, admittedAt: Ts, validUntil: Ts });
export type TurnClaims = z.infer<typeof Claims>;

export type TokenRefusal = 'malformed' | 'signature_mismatch' | 'context_mismatch' | 'expired';

/** Tokens remembered by one replica; past that the oldest is forgotten, and read again when it comes back. */
const REMEMBERED_MAX = 10_000;

type Identity = Omit<AccessContext, 'now'>;

const identityOf = ({ now: _, ...identity }: AccessContext): Identity => identity;

/** Identity of a context for the length of a turn: everything but `now`, which moves. */
export const contextHash = (context: AccessContext): string => hashOf(identityOf(context));

/**
 * Signs turns so that any replica answers for a turn that another one opened.
 *
 * A token comes back with every call of its turn. One whose signature and context held is remembered with that context, and then
 * both are compared instead of computed: that was a tenth of a decision.
 */
export class TurnTokens {
  readonly #secret: string;
  readonly #verified = new Map<string, { readonly claims: TurnClaims; readonly identity: Identity }>();

  constructor(secret: string) {
    this.#secret = secret;
  }

  sign(claims: TurnClaims): string {
    const payload = Buffer.from(canonicalJson(claims), 'utf8').toString('base64url');
    return `${payload}.${this.#mac(payload)}`;
  }

  /**
   * Signature before claims, in constant time; then the context it was opened for, then its end.
   *
   * @returns The same object each time for one token that is remembered.
   */
  verify(token: string, context: AccessContext, now: number): Result<TurnClaims, TokenRefusal> {
    const identity = identityOf(context);
    const known = this.#verified.get(token);
    const verified = known !== undefined && isDeepStrictEqual(known.identity, identity) ? ok(known.claims) : this.#read(token, identity);
    if (!verified.ok) return verified;
    return now >= (instantOf(verified.value.validUntil) ?? 0) ? err('expired') : verified;
  }

  #read(token: string, identity: Identity): Result<TurnClaims, TokenRefusal> {
    const [payload, mac, ...more] = token.split('.');
    if (payload === undefined || mac === undefined || more.length > 0) return err('malformed');
    const expected = Buffer.from(this.#mac(payload));
    const given = Buffer.from(mac);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return err('signature_mismatch');
    const claims = Claims.parse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
    if (claims.contextHash !== hashOf(identity)) return err('context_mismatch');
    this.#remember(token, { claims, identity });
    return ok(claims);
  }

  #remember(token: string, verified: { readonly claims: TurnClaims; readonly identity: Identity }): void {
    this.#verified.set(token, verified);
    for (const oldest of this.#verified.keys()) {
      if (this.#verified.size <= REMEMBERED_MAX) return;
      this.#verified.delete(oldest);
    }
  }

  #mac(payload: string): string {
    return createHmac('sha256', this.#secret).update(payload).digest('base64url');
  }
}
