import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BrokerListener, brokerAccounts, renderNatsConfig } from '@sharedos/bus';
import type { AuthFile } from './auth-file.ts';
import { secretsOf, writeSecret } from './keys.ts';
import { principalIn } from './auth-file.ts';

const ROUTES_PORT = 6222;
const ROUTE_SECRET = 'route-password';

/**
 * Writes the configuration of the broker anew: `nats.conf`, or one for each server of a cluster. Those of a cluster hold the password
 * of its routes and are among the secrets.
 *
 * @returns The files, by their path from the folder.
 */
export const writeBrokerFiles = async (folder: string, auth: AuthFile): Promise<readonly string[]> => {
  const { port, storeDir, secretsDir, cluster } = auth.broker;
  const accounts = brokerAccounts(
    auth.principals.filter(({ keys }) => keys.length > 0),
    (user) => ({ nkeys: typeof user === 'string' ? (auth.users[user] ?? []) : principalIn(auth, user).keys }),
  );
  const tls = { certificateFile: join(secretsDir, 'broker.pem'), keyFile: join(secretsDir, 'broker-key.pem') };
  const listener = (name: string): BrokerListener => ({ name, host: '0.0.0.0', port, storeDir, tls });
  if (cluster.length === 0) {
    await writeFile(join(folder, 'nats.conf'), renderNatsConfig(listener('sharedos'), accounts));
    return ['nats.conf'];
  }
  const password = await routePassword(folder);
  return Promise.all(
    cluster.map(async (name) => {
      const routes = cluster.filter((other) => other !== name).map((other) => `route:${password}@${other}:${ROUTES_PORT}`);
      const file = `${name}.conf`;
      const block = { name: 'sharedos', port: ROUTES_PORT, routes, authorization: { user: 'route', password } };
      await writeSecret(folder, file, renderNatsConfig({ ...listener(name), cluster: block }, accounts));
      return join('secrets', file);
    }),
  );
};

const routePassword = async (folder: string): Promise<string> => {
  const known = await readFile(join(secretsOf(folder), ROUTE_SECRET), 'utf8').catch(() => undefined);
  if (known !== undefined) return known.trim();
  const made = `s${randomBytes(24).toString('hex')}`;
  await writeSecret(folder, ROUTE_SECRET, `${made}\n`);
  return made;
};

/** Writes who manages which namespace, for `SHAREDOS_ROOTS_FILE`. */
export const writeRoots = async (folder: string, { tenants }: AuthFile): Promise<void> => {
  const roots = Object.fromEntries(Object.entries(tenants).map(([namespaceId, tenant]) => [namespaceId, tenant.roots]));
  await writeFile(join(folder, 'roots.json'), `${JSON.stringify(roots)}\n`);
};
