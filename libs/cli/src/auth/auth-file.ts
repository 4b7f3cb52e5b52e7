import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BrokerPrincipal, OPERATOR, PROVISIONER, principalUser } from '@sharedos/bus';
import { Address, NameId, SERVICE_NAMES, sameAddress } from '@sharedos/contracts';
import { z } from 'zod';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';

const Keys = z.array(z.string().regex(/^U[A-Z2-7]{55}$/));

/** Who may connect, and with which public keys. Nothing in it is secret. */
export const AuthFile = z.strictObject({
  version: z.literal(1),
  broker: z.strictObject({
    /** Names that the certificate of the broker is for. */
    hosts: z.array(z.string().min(1)),
    port: z.int(),
    storeDir: z.string().min(1),
    /** Where the broker finds the files of its certificate. */
    secretsDir: z.string().min(1),
    /** Names of the servers of a cluster; one server without a name of its own when empty. */
    cluster: z.array(z.string().regex(/^[a-z0-9-]+$/)),
  }),
  /** Keys of services and maintainers, by user. The newest is last. */
  users: z.record(z.string(), Keys),
  /** Namespaces, with those who manage each without a grant. */
  tenants: z.record(NameId, z.strictObject({ roots: z.array(Address) })),
  principals: z.array(z.strictObject({ namespaceId: NameId, principal: Address, auditor: z.boolean(), keys: Keys })),
});
export type AuthFile = z.infer<typeof AuthFile>;
export type KnownPrincipal = AuthFile['principals'][number];

/** Users of the broker that are no principals. */
export const USERS: readonly string[] = [...SERVICE_NAMES, PROVISIONER, OPERATOR];

const placeOf = (folder: string): string => join(folder, 'auth.json');

/** @throws CommandFailure when there is none, or it cannot be read. */
export const readAuth = async (folder: string): Promise<AuthFile> => {
  const text = await readFile(placeOf(folder), 'utf8').catch(() => undefined);
  if (text === undefined)
    throw usageFailure(`there is no ${placeOf(folder)}: make it with "sharedos auth init", or name its folder with --dir`);
  try {
    return AuthFile.parse(JSON.parse(text));
  } catch {
    throw usageFailure(`${placeOf(folder)} is not a file of "sharedos auth"`);
  }
};

/** Writes it whole or not at all. */
export const writeAuth = async (folder: string, auth: AuthFile): Promise<void> => {
  const draft = `${placeOf(folder)}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(auth, null, 2)}\n`, { mode: 0o644 });
  await rename(draft, placeOf(folder));
};

/** @throws CommandFailure when somebody has it already. */
export const refuseExisting = async (folder: string): Promise<void> => {
  if ((await readFile(placeOf(folder), 'utf8').catch(() => undefined)) === undefined) return;
  throw new CommandFailure(
    EXIT.refused,
    'already_there',
    `${placeOf(folder)} is there already, and a running system may have its keys: nothing was changed`,
  );
};

/** @throws CommandFailure when there is no such principal. */
export const principalIn = ({ principals }: AuthFile, { namespaceId, principal }: BrokerPrincipal): KnownPrincipal => {
  const known = principals.find((one) => one.namespaceId === namespaceId && sameAddress(one.principal, principal));
  if (known === undefined)
    throw new CommandFailure(
      EXIT.refused,
      'unknown_principal',
      `${principalUser(namespaceId, principal)} is no principal: see "sharedos auth list"`,
    );
  return known;
};
