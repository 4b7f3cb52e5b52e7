import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuthFile, USERS, refuseExisting, writeAuth } from './auth-file.ts';
import { writeBrokerFiles, writeRoots } from './broker-files.ts';
import { makeCertificates } from './certificates.ts';
import { keyFor, makeSecrets, writeSecret } from './keys.ts';

export interface NewAuth extends Pick<AuthFile['broker'], 'hosts' | 'port' | 'storeDir' | 'cluster'> {
  /** Where the broker sees the secrets; where they are when absent. */
  readonly secretsDir: string;
  /** Host of Redis, as the authorizers reach it. */
  readonly redisHost: string;
  /** For the name of the key that seals the audit. */
  readonly today: string;
}

/** Redis reads words as commands: the password begins with a letter and has nothing else in it. */
const secret = (): string => `s${randomBytes(32).toString('hex')}`;

/** Makes all keys and secrets of a system that has none, and the configuration of its broker. */
export const initAuth = async (folder: string, { redisHost, today, ...broker }: NewAuth): Promise<readonly string[]> => {
  await refuseExisting(folder);
  const { authority, certificate, key } = await makeCertificates(broker.hosts);
  await mkdir(folder, { recursive: true });
  await makeSecrets(folder);
  await writeSecret(folder, 'ca.pem', authority);
  await writeSecret(folder, 'broker.pem', certificate);
  await writeSecret(folder, 'broker-key.pem', key);
  const redisPassword = secret();
  await writeSecret(folder, 'redis-password', `${redisPassword}\n`);
  // Nothing is kept: the truth about uses is in the ledger, and a restart must look like one.
  await writeSecret(folder, 'redis.conf', `save ""\nappendonly no\nmaxmemory-policy noeviction\nrequirepass ${redisPassword}\n`);
  await writeSecret(folder, 'redis-url', `redis://:${redisPassword}@${redisHost}\n`);
  await writeSecret(folder, 'token-secret', `${secret()}\n`);
  const sealKey = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64url');
  await writeSecret(folder, 'seal-keys', `made-${today}:${sealKey}\n`);
  const users = Object.fromEntries(
    await Promise.all(USERS.map(async (user) => [user, [await keyFor(folder, user)]] as [string, string[]])),
  );
  const auth: AuthFile = { version: 1, broker, users, tenants: {}, principals: [] };
  const files = await writeBrokerFiles(folder, auth);
  await writeRoots(folder, auth);
  await writeAuth(folder, auth);
  await writeGateway(folder);
  return files;
};

/** What the gateway is told by its operator: nobody yet. */
const writeGateway = async (folder: string): Promise<void> => {
  const at = (name: string): string => join(folder, 'gateway', name);
  await mkdir(join(folder, 'gateway'), { recursive: true });
  await writeFile(at('identities.json'), '[]\n', { mode: 0o644 });
  await writeFile(at('jwks.json'), '{"keys":[]}\n', { mode: 0o644 });
  // Read by whoever starts the container, and by nobody in it.
  await writeFile(at('gateway.env'), 'SHAREDOS_TOKEN_ISSUER=\nSHAREDOS_TOKEN_AUDIENCE=\nSHAREDOS_TOKEN_ALGORITHMS=RS256\n', {
    mode: 0o600,
  });
};
