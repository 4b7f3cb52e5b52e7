import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { type Json, hashOf } from '@sharedos/contracts';

/**
 * The version of a file or folder: an opaque token of which inode it is, its size, and when content and inode last changed. Any
 * write through this provider changes it (an append changes the size), and so does a chmod or rename from outside, which errs
 * to the safe side. Hashing the content instead would make `stat` read the whole file. A writer outside this provider that
 * changes content in place to the same size within one tick of the file system's clock goes unseen.
 */
export const versionOf = (stats: BigIntStats): string =>
  hashOf([stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].map(String)).slice(0, 32);

/** A string is its text; any other JSON is its JSON text. `undefined` for text that UTF-8 cannot say. */
export const bytesOf = (content: Json): Buffer | undefined => {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return text.isWellFormed() ? Buffer.from(text, 'utf8') : undefined;
};

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes as text when they are UTF-8 without NUL, so that writing the text again gives the same bytes. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
};

/** The first `size` bytes, or fewer where the file ends before. What is appended meanwhile is left out. */
export const readBytes = async (handle: FileHandle, size: number): Promise<Buffer> => {
  const bytes = Buffer.alloc(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(bytes, filled, size - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
};

/** Adds `bytes` at the end of a file opened for appending, whole or, as far as can be undone, not at all. */
export const appendBytes = async (handle: FileHandle, bytes: Uint8Array, sizeBefore: number): Promise<void> => {
  let written = 0;
  try {
    while (written < bytes.byteLength) written += (await handle.write(bytes, written)).bytesWritten;
  } catch (error) {
    // A full disk stops in the middle. Cut our part off again, unless another process has written after it.
    const { size } = await handle.stat();
    if (size === sizeBefore + written) await handle.truncate(sizeBefore);
    throw error;
  }
};
