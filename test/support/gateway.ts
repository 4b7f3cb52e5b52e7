import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Address } from '@sharedos/contracts';
import { type ManagedProcess, startProcess } from '@sharedos/testing';
import { type CryptoKey, type JWTPayload, SignJWT, exportJWK, generateKeyPair } from 'jose';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT, type TestSystem } from './test-system.ts';

export const ISSUER = 'https://issuer.test';
export const AUDIENCE = 'sharedos';
const READY_DEADLINE_MS = 30_000;

export interface TokenOptions {
  readonly claims?: JWTPayload;
  readonly issuer?: string;
  readonly audience?: string;
  readonly expires?: string;
  readonly key?: CryptoKey | Uint8Array;
  readonly algorithm?: string;
}

/** The gateway as a process over a running system: alice with scout for her agent, bob and the auditor with none. */
export interface TestGateway {
  readonly url: string;
  readonly process: ManagedProcess;
  token(subject: string, options?: TokenOptions): Promise<string>;
  /** One request with the token of a principal, alice's when absent. */
  request(method: string, path: string, options?: RequestOptions): Promise<Response>;
  stop(): Promise<void>;
}

export interface RequestOptions {
  /** Sent as JSON; a text as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** None is sent for null. */
  readonly token?: string | null;
  readonly signal?: AbortSignal;
}

export const startGateway = async (system: TestSystem, env: Readonly<Record<string, string>> = {}): Promise<TestGateway> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-gateway-'));
  const { publicKey, privateKey } = await generateKeyPair('EdDSA');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'EdDSA', use: 'sig' };
  const keys = join(folder, 'keys.json');
  const identitiesFile = join(folder, 'identities.json');
  await writeFile(keys, JSON.stringify({ keys: [jwk] }));
  await writeFile(identitiesFile, JSON.stringify(identities(system)), { mode: 0o600 });
  let url: string | undefined;
  const started = await startProcess({
    label: 'gateway',
    command: process.execPath,
    args: [join(import.meta.dirname, '../../services/gateway/src/main.ts')],
    cwd: folder,
    env: {
      SHAREDOS_NATS_URL: system.stack.natsUrl,
      SHAREDOS_GATEWAY_IDENTITIES: identitiesFile,
      SHAREDOS_GATEWAY_PORT: '0',
      SHAREDOS_TOKEN_ISSUER: ISSUER,
      SHAREDOS_TOKEN_AUDIENCE: AUDIENCE,
      SHAREDOS_TOKEN_KEYS: keys,
      SHAREDOS_TOKEN_ALGORITHMS: 'EdDSA',
      ...env,
    },
    onLine: (line) => {
      url ??= /"event":"ready".*"url":"([^"]+)"/.exec(line)?.[1];
    },
  });
  await started.ready(() => url !== undefined, READY_DEADLINE_MS);

  const token: TestGateway['token'] = (
    subject,
    { claims = {}, issuer = ISSUER, audience = AUDIENCE, expires = '10m', key, algorithm } = {},
  ) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: algorithm ?? 'EdDSA', kid: 'k1' })
      .setSubject(subject)
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(key ?? privateKey);

  return {
    url: url as unknown as string,
    process: started,
    token,
    request: async (method, path, { body, headers = {}, token: given, signal } = {}) => {
      const bearer = given === undefined ? await token('alice') : given;
      return fetch(`${url}${path}`, {
        method,
        headers: {
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
    },
    stop: async () => {
      await started.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const identities = ({ stack }: TestSystem): readonly object[] => {
  const credential = (principal: Address) => {
    const { user, password } = stack.credentials.principal(NAMESPACE, principal);
    return { user, password };
  };
  const identity = (sub: string, principal: Address) => ({
    claims: { sub },
    namespaceId: NAMESPACE,
    principal,
    credential: credential(principal),
    purpose: 'testing',
  });
  return [
    { ...identity('alice', ALICE), agent: { address: SCOUT, credential: credential(SCOUT) } },
    identity('bob', BOB),
    identity('auditor', AUDITOR),
  ];
};
