import { type BrokerPrincipal, principalUser } from '@sharedos/bus';
import { type Address, sameAddress } from '@sharedos/contracts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { type AuthFile, USERS, principalIn, readAuth, writeAuth } from './auth-file.ts';
import { writeBrokerFiles, writeRoots } from './broker-files.ts';
import { forgetSeed, keyFor, seedFile } from './keys.ts';

/** A user of the broker: one of ours by its name, or a principal. */
export type AuthUser = { readonly name: string } | BrokerPrincipal;

export const userOf = (user: AuthUser): string => ('name' in user ? user.name : principalUser(user.namespaceId, user.principal));

/** What a change came to. */
export interface Changed {
  /** Files that the broker has to read again. */
  readonly files: readonly string[];
  /** Where the seed of whoever it was about is. */
  readonly seed?: string;
}

const saved = async (folder: string, auth: AuthFile): Promise<Changed> => {
  // The keys first: a broker that is told of a key nobody remembers could not be told to forget it.
  await writeAuth(folder, auth);
  await writeRoots(folder, auth);
  return { files: await writeBrokerFiles(folder, auth) };
};

export const addTenant = async (folder: string, namespaceId: string, roots: readonly Address[]): Promise<Changed> => {
  const auth = await readAuth(folder);
  if (auth.tenants[namespaceId] !== undefined) throw refusal('known_tenant', `${namespaceId} is a tenant already`);
  return saved(folder, { ...auth, tenants: { ...auth.tenants, [namespaceId]: { roots: [...roots] } } });
};

export const addPrincipal = async (folder: string, added: BrokerPrincipal): Promise<Changed> => {
  const auth = await readAuth(folder);
  const { namespaceId, principal, auditor = false } = added;
  if (auth.tenants[namespaceId] === undefined)
    throw refusal('unknown_tenant', `${namespaceId} is no tenant: "sharedos auth tenant add ${namespaceId}"`);
  const user = userOf(added);
  const isKnown = auth.principals.some((one) => one.namespaceId === namespaceId && sameAddress(one.principal, principal));
  // A revoked name stays known: whoever gets it again is who everybody granted things to.
  if (isKnown) throw refusal('known_principal', `${user} is known already: "sharedos auth rotate" gives it a new key`);
  const keys = [await keyFor(folder, user)];
  const changed = await saved(folder, { ...auth, principals: [...auth.principals, { namespaceId, principal, auditor, keys }] });
  return { ...changed, seed: seedFile(folder, user) };
};

/** Gives a user a new key. The old one works until {@link finishRotation}, so that nothing has to stop in between. */
export const rotate = async (folder: string, user: AuthUser): Promise<Changed> => {
  const auth = await readAuth(folder);
  const keys = keysOf(auth, user);
  if (keys.length > 1) throw refusal('rotation_unfinished', `${userOf(user)} has two keys: end the rotation with --finish first`);
  const changed = await saved(folder, withKeys(auth, user, [...keys, await keyFor(folder, userOf(user))]));
  return { ...changed, seed: seedFile(folder, userOf(user)) };
};

/** Takes all keys of a user but the newest. */
export const finishRotation = async (folder: string, user: AuthUser): Promise<Changed> => {
  const auth = await readAuth(folder);
  return saved(folder, withKeys(auth, user, keysOf(auth, user).slice(-1)));
};

/** Takes every key of a principal. Its name stays, and with it what was granted to it. */
export const revoke = async (folder: string, principal: BrokerPrincipal): Promise<Changed> => {
  const auth = await readAuth(folder);
  keysOf(auth, principal);
  const changed = await saved(folder, withKeys(auth, principal, []));
  await forgetSeed(folder, userOf(principal));
  return changed;
};

const keysOf = (auth: AuthFile, user: AuthUser): readonly string[] => {
  if (!('name' in user)) return principalIn(auth, user).keys;
  if (!USERS.includes(user.name))
    throw usageFailure(`${user.name} is no user of the broker; there are ${USERS.join(', ')}, and principals`);
  return auth.users[user.name] ?? [];
};

const withKeys = (auth: AuthFile, user: AuthUser, keys: readonly string[]): AuthFile => {
  if ('name' in user) return { ...auth, users: { ...auth.users, [user.name]: [...keys] } };
  const known = principalIn(auth, user);
  return { ...auth, principals: auth.principals.map((one) => (one === known ? { ...one, keys: [...keys] } : one)) };
};

const refusal = (code: string, message: string): CommandFailure => new CommandFailure(EXIT.refused, code, message);
