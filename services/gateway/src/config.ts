import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type JSONWebKeySet, type JWTVerifyGetKey, createLocalJWKSet, createRemoteJWKSet } from 'jose';
import { z } from 'zod';
import { ALGORITHMS } from './bearer.ts';

const number = (min: number, max: number, otherwise: number) => z.coerce.number().int().min(min).max(max).default(otherwise);

/** Settings of the gateway, from its environment. A security setting has no default. */
export const gatewaySettings = {
  SHAREDOS_NATS_URL: z.string().min(1).meta({ description: 'Address of the broker, or several separated by commas' }),
  SHAREDOS_NATS_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Certificates, in PEM, to believe the broker by; with them there is no connection without TLS' }),
  SHAREDOS_GATEWAY_IDENTITIES: z
    .string()
    .min(1)
    .meta({ description: 'File of the principals it speaks for, with their users of the broker' }),
  SHAREDOS_GATEWAY_HOST: z.string().min(1).default('127.0.0.1').meta({ description: 'Address to listen on' }),
  SHAREDOS_GATEWAY_PORT: number(0, 65_535, 8_080).meta({ description: 'Port to listen on; 0 for a free one' }),
  SHAREDOS_TOKEN_ISSUER: z.string().min(1).meta({ description: 'The `iss` of every token that is taken' }),
  SHAREDOS_TOKEN_AUDIENCE: z.string().min(1).meta({ description: 'The `aud` of every token that is taken' }),
  SHAREDOS_TOKEN_KEYS: z.string().min(1).meta({ description: 'Keys of the issuer: an https URL of a JWK set, or a file that holds one' }),
  SHAREDOS_TOKEN_ALGORITHMS: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(ALGORITHMS)).min(1))
    .meta({ description: 'Signature algorithms of tokens, with commas between' }),
  SHAREDOS_TURN_WAIT_MS: number(1_000, 600_000, 120_000).meta({ description: 'How long a request waits for the result of a turn' }),
  SHAREDOS_OPERATION_TIMEOUT_MS: number(1_000, 600_000, 60_000).meta({ description: 'How long a tool call may take' }),
  SHAREDOS_RATE_PER_ADDRESS: number(1, 1_000_000, 600).meta({ description: 'Requests a minute from one address' }),
  SHAREDOS_RATE_PER_PRINCIPAL: number(1, 1_000_000, 600).meta({ description: 'Requests a minute of one principal' }),
  SHAREDOS_STREAMS_MAX: number(1, 1_000, 16).meta({ description: 'Event streams of one principal at once' }),
  SHAREDOS_GRACE_MS: number(0, 600_000, 10_000).meta({ description: 'How long a stop waits for requests that were begun' }),
  SHAREDOS_INSTANCE: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .default(() => `i-${randomBytes(4).toString('hex')}`)
    .meta({ description: 'Name of this process; random when absent' }),
};
export type GatewaySettings = z.infer<z.ZodObject<typeof gatewaySettings>>;

/** @throws Error in one line that names the variable to change. */
export const readSettings = (env: Readonly<Record<string, string | undefined>>): GatewaySettings => {
  // An empty variable is one that was not set: container tools write them that way.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = z.object(gatewaySettings).safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${String(issue?.path[0])} is not set as it must be: ${issue?.message}`);
};

const KEYS_TIMEOUT_MS = 5_000;

/** @throws Error where the file is none. A set behind a URL is asked for when a token names a key that is not known yet. */
export const readKeys = async (place: string): Promise<JWTVerifyGetKey> => {
  if (/^https?:\/\//.test(place)) {
    const url = new URL(place);
    if (url.protocol !== 'https:' && !['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname))
      throw new Error('SHAREDOS_TOKEN_KEYS must be an https URL: whoever is on the way could put its own keys in');
    return createRemoteJWKSet(url, { timeoutDuration: KEYS_TIMEOUT_MS });
  }
  try {
    return createLocalJWKSet(JSON.parse(await readFile(place, 'utf8')) as JSONWebKeySet);
  } catch {
    throw new Error('SHAREDOS_TOKEN_KEYS names a file that holds no JWK set');
  }
};
