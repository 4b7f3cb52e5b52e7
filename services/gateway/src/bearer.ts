import { type Result, err, ok } from '@sharedos/contracts';
import { type JWTPayload, type JWTVerifyGetKey, errors, jwtVerify } from 'jose';
import type { Identity } from './identities.ts';

/** Signatures with a key pair only: a secret that checks could also sign, and "none" signs nothing. */
export const ALGORITHMS = ['EdDSA', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

export interface TokenRules {
  readonly key: JWTVerifyGetKey;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly Algorithm[];
}

const TOKEN_LENGTH_MAX = 8_192;
const CLOCK_TOLERANCE_S = 5;
/** What says that the token is wrong. Everything else says that its key could not be had. */
const WRONG = [
  errors.JWTExpired,
  errors.JWTClaimValidationFailed,
  errors.JWTInvalid,
  errors.JWSInvalid,
  errors.JWSSignatureVerificationFailed,
  errors.JOSEAlgNotAllowed,
  errors.JOSENotSupported,
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
];

export type Bearer = (authorization: string | undefined) => Promise<Result<Identity, 'unauthorized' | 'unavailable'>>;

/** Finds whom a request speaks for: the one identity whose claims are all in a token that holds. Two are none. */
export const bearerOf =
  (identities: readonly Identity[], { key, issuer, audience, algorithms }: TokenRules): Bearer =>
  async (authorization) => {
    const [, token] = /^Bearer ([A-Za-z0-9_.-]+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined || token.length > TOKEN_LENGTH_MAX) return err('unauthorized');
    let payload: JWTPayload;
    try {
      const rules = { issuer, audience, algorithms: [...algorithms], clockTolerance: CLOCK_TOLERANCE_S, requiredClaims: ['exp', 'sub'] };
      ({ payload } = await jwtVerify(token, key, rules));
    } catch (error) {
      return err(WRONG.some((kind) => error instanceof kind) ? 'unauthorized' : 'unavailable');
    }
    const [identity, ...others] = identities.filter(({ claims }) =>
      Object.entries(claims).every(([name, value]) => Object.hasOwn(payload, name) && payload[name] === value),
    );
    return identity === undefined || others.length > 0 ? err('unauthorized') : ok(identity);
  };
