import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newUserKey } from '@sharedos/bus';

export const secretsOf = (folder: string): string => join(folder, 'secrets');

const NAME_MAX = 200;
/** A file name holds 255 bytes, and a principal's name may be longer. */
const fileName = (user: string): string => (user.length <= NAME_MAX ? user : createHash('sha256').update(user).digest('hex'));

/** Where the seed of a user is. */
export const seedFile = (folder: string, user: string): string => join(secretsOf(folder), `${fileName(user)}.seed`);

/**
 * The folder is closed to everybody else, so the files in it need not be: containers have users of their own, to whom each file is
 * given alone.
 */
export const makeSecrets = async (folder: string): Promise<void> => {
  await mkdir(secretsOf(folder), { recursive: true, mode: 0o700 });
};

const READABLE_INSIDE = 0o444;

export const writeSecret = async (folder: string, name: string, text: string): Promise<void> => {
  const place = join(secretsOf(folder), name);
  // A file that may not be written is replaced, and never opened.
  await rm(place, { force: true });
  await writeFile(place, text, { mode: READABLE_INSIDE, flag: 'wx' });
};

/** Makes a key for a user and keeps its seed. @returns Its public part. */
export const keyFor = async (folder: string, user: string): Promise<string> => {
  const { seed, publicKey } = newUserKey();
  await writeSecret(folder, `${fileName(user)}.seed`, `${seed}\n`);
  return publicKey;
};

export const forgetSeed = (folder: string, user: string): Promise<void> => rm(seedFile(folder, user), { force: true });
