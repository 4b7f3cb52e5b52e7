import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Address, type Result, canonicalJson, err, ok } from '@sharedos/contracts';
import { ownerFolder } from '../confinement/owner-folder.ts';

/** Whose secrets: those of one server of one owner. */
export interface SecretScope {
  readonly namespaceId: string;
  readonly owner: Address;
  readonly server: string;
}

/**
 * Keeps what an owner's server needs to know and nobody else may. Never in the log, in a record, a span or a message to anybody but that
 * server. Every answer is a value; `unavailable` also where what is kept cannot be opened with the key at hand.
 */
export interface SecretStore {
  read(scope: SecretScope): Promise<Result<ReadonlyMap<string, string>, 'unavailable'>>;
  /** A later value takes the place of an earlier one. */
  put(scope: SecretScope, name: string, value: string): Promise<Result<void, 'unavailable' | 'too_many'>>;
  forget(scope: SecretScope, name: string): Promise<Result<void, 'unavailable'>>;
  /** Forgets all of a server. */
  clear(scope: SecretScope): Promise<Result<void, 'unavailable'>>;
}

export const SECRETS_MAX = 64;
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 1;
const ENDING = '.sealed';

/** @throws Error where it is no base64 of 32 bytes. */
export const secretKeyOf = (text: string): Buffer => {
  const key = Buffer.from(text.trim(), 'base64');
  if (key.byteLength !== KEY_BYTES) throw new Error('a key of secrets is 32 bytes as base64');
  return key;
};

/**
 * Secrets in files, one each, sealed with AES-256-GCM. A file is bound to its owner, server and name: moved to another place it does not
 * open. Each is replaced whole, so that executors which share the folder need no lock.
 */
export const sealedFiles = ({ folder, key }: { readonly folder: string; readonly key: Buffer }): SecretStore => {
  const placeOf = ({ namespaceId, owner, server }: SecretScope): string => join(folder, ...ownerFolder(namespaceId, owner), server);
  const boundTo = (scope: SecretScope, name: string): Buffer =>
    Buffer.from(canonicalJson([VERSION, scope.namespaceId, scope.owner, scope.server, name]));

  const seal = (scope: SecretScope, name: string, value: string): Buffer => {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(boundTo(scope, name));
    const sealed = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([VERSION]), iv, cipher.getAuthTag(), sealed]);
  };
  const unseal = (scope: SecretScope, name: string, file: Buffer): string => {
    if (file[0] !== VERSION) throw new Error('a file of secrets of another version');
    const [iv, tag] = [file.subarray(1, 1 + IV_BYTES), file.subarray(1 + IV_BYTES, 1 + IV_BYTES + TAG_BYTES)];
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(boundTo(scope, name)).setAuthTag(tag);
    return Buffer.concat([decipher.update(file.subarray(1 + IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
  };
  const namesIn = async (place: string): Promise<readonly string[]> => {
    const files = await readdir(place).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return files
      .filter((file) => file.endsWith(ENDING))
      .map((file) => file.slice(0, -ENDING.length))
      .sort();
  };
  const attempted = async <T>(act: () => Promise<T>): Promise<Result<T, 'unavailable'>> => {
    try {
      return ok(await act());
    } catch {
      return err('unavailable');
    }
  };

  return {
    read: (scope) =>
      attempted(async () => {
        const place = placeOf(scope);
        const names = await namesIn(place);
        return new Map(
          await Promise.all(names.map(async (name) => [name, unseal(scope, name, await readFile(join(place, name + ENDING)))] as const)),
        );
      }),
    put: async (scope, name, value) => {
      const written = await attempted(async () => {
        const place = placeOf(scope);
        await mkdir(place, { recursive: true, mode: 0o700 });
        const names = await namesIn(place);
        if (!names.includes(name) && names.length >= SECRETS_MAX) return 'too_many';
        const made = join(place, `.${randomUUID()}`);
        const file = await open(made, 'wx', 0o600);
        try {
          await file.writeFile(seal(scope, name, value));
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(made, join(place, name + ENDING));
        return 'written';
      });
      if (!written.ok) return written;
      return written.value === 'too_many' ? err('too_many') : ok(undefined);
    },
    forget: (scope, name) => attempted(() => rm(join(placeOf(scope), name + ENDING), { force: true })),
    clear: (scope) => attempted(() => rm(placeOf(scope), { recursive: true, force: true })),
  };
};
