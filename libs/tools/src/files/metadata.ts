import type { BigIntStats } from 'node:fs';
import { mkdir, open, readFile, unlink } from 'node:fs/promises';
import { JsonObj, err, hashOf, ok } from '@sharedos/contracts';
import { type Refusable, attempt } from './file-refusal.ts';

/** Folder of a store with one small file for each file that has metadata. */
export const METADATA = 'meta';
/** Most bytes of one file's metadata as JSON. */
export const METADATA_BYTES_MAX = 16 * 1024;

/**
 * Where the metadata of one form of a file is kept: its path, and the inode and time of change that this form was given before it
 * came to its place. So old metadata is there until the old file is gone, and the new before the new one is seen: a crash
 * leaves one pair or the other. A file that was changed from outside is another form, and has none.
 */
export const metadataName = (path: readonly string[], { ino, mtimeNs }: Pick<BigIntStats, 'ino' | 'mtimeNs'>): string =>
  `${hashOf(path)}.${ino}.${mtimeNs}`;

/** `undefined` for metadata that is larger than is kept. */
export const metadataText = (metadata: JsonObj): string | undefined => {
  const text = JSON.stringify(metadata);
  return Buffer.byteLength(text) <= METADATA_BYTES_MAX ? text : undefined;
};

/** @param storeAt A path of the owner's store. */
export const writeMetadata = (storeAt: string, name: string, text: string): Promise<Refusable<void>> =>
  attempt(async () => {
    await mkdir(`${storeAt}/${METADATA}`, { recursive: true, mode: 0o700 });
    const file = await open(`${storeAt}/${METADATA}/${name}`, 'w', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  });

export const readMetadata = async (storeAt: string, name: string): Promise<Refusable<JsonObj | undefined>> => {
  const text = await attempt(() => readFile(`${storeAt}/${METADATA}/${name}`, 'utf8'));
  if (!text.ok) return text.error === 'file_not_found' || text.error === 'not_a_directory' ? ok(undefined) : text;
  const parsed = JsonObj.safeParse(JSON.parse(text.value));
  return parsed.success ? ok(parsed.data) : err('files_unavailable');
};

/** What is left behind by a failure here is never found again, and costs nothing but its bytes. */
export const dropMetadata = async (storeAt: string, name: string): Promise<void> => {
  await attempt(() => unlink(`${storeAt}/${METADATA}/${name}`));
};
