// Writes .env beside docker-compose.yml: one random password for each user of the broker, for Redis, the secret of the turn tokens,
// and the key that signs the audit proof. It never replaces one that stands, because the running system has those passwords.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const place = process.argv[2] ?? join(import.meta.dirname, '..', '.env');

/** nats-server reads a value as configuration: it begins with a letter and has nothing in it that means something there. */
const secret = (): string => `s${randomBytes(32).toString('hex')}`;

const broker = await readFile(join(import.meta.dirname, 'nats', 'nats.conf'), 'utf8');
const users = [...broker.matchAll(/password: \$(\w+)/g)].map(([, name]) => name as string);
const sealKey = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64url');
const secrets = [...users, 'SHAREDOS_REDIS_PASSWORD', 'SHAREDOS_TOKEN_SECRET'].map((name) => `${name}=${secret()}\n`);
const lines = [...secrets, `SHAREDOS_SEAL_KEYS=made-${new Date().toISOString().slice(0, 10)}:${sealKey}\n`];

try {
  await writeFile(place, lines.join(''), { mode: 0o600, flag: 'wx' });
  process.stdout.write(`wrote ${place} (${lines.length} secrets, yours alone)\n`);
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  process.stderr.write(`${place} is there already; remove it only together with the data it belongs to (docker compose down --volumes)\n`);
  process.exitCode = 1;
}
