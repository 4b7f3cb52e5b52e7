import { isUtf8 } from 'node:buffer';
import type { BigIntStats } from 'node:fs';
import { fstatSync, readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import { type Json, hashOf } from '@sharedos/contracts';
import { z } from 'zod';

/**
 * The version of a file or folder: an opaque token of which inode it is, its size, and when content and inode last changed. Every
 * write through this provider makes another inode or another time, and so does a chmod or rename from outside, which errs to the
 * safe side. Hashing the content instead would make `stat` read the whole file. A writer outside this provider that changes content
 * in place to the same size within one tick of the file system's clock goes unseen. A folder's version tells which entries it
 * has, not what is in them.
 */
export const versionOf = (stats: BigIntStats): string =>
  hashOf([stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].map(String)).slice(0, 32);

/** What `files.read` tells of a file that is no text, given back: the two members and nothing else. */
const Base64Content = z.strictObject({
  encoding: z.literal('base64'),
  content: z.string().regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/),
});
const CLAIMS_BASE64 = z.strictObject({ encoding: z.literal('base64'), content: z.string() });

/**
 * A string is its text; `{encoding: "base64", content}` is the bytes; any other JSON is its JSON text. `undefined` for text that
 * UTF-8 cannot say, and for what calls itself base64 and is not.
 */
export const bytesOf = (content: Json): Buffer | undefined => {
  if (CLAIMS_BASE64.safeParse(content).success) {
    const binary = Base64Content.safeParse(content);
    return binary.success ? Buffer.from(binary.data.content, 'base64') : undefined;
  }
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return text.isWellFormed() ? Buffer.from(text, 'utf8') : undefined;
};

/** The bytes as text when they are UTF-8 without NUL, so that writing the text again gives the same bytes. */
export const textOf = (bytes: Buffer): string | undefined => (bytes.includes(0) || !isUtf8(bytes) ? undefined : decoded(bytes));

/** A text of a megabyte at once is kept outside the heap, and each such text costs a collection of the whole heap by and by. */
const DECODED_AT_ONCE = 512 * 1024;

const decoded = (bytes: Buffer): string => {
  if (bytes.byteLength <= DECODED_AT_ONCE) return bytes.toString('utf8');
  const decoder = new StringDecoder('utf8');
  let text = '';
  for (let from = 0; from < bytes.byteLength; from += DECODED_AT_ONCE) text += decoder.write(bytes.subarray(from, from + DECODED_AT_ONCE));
  return text + decoder.end();
};

/** The first `size` bytes, or fewer where the file ends before. What is appended meanwhile is left out. */
export const readBytes = async (handle: FileHandle, size: number, bytes: Buffer = Buffer.allocUnsafe(size)): Promise<Buffer> => {
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(bytes, filled, size - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
};

/** One buffer that is kept: memory outside the heap for every read costs more to collect than to read into. */
const KEPT_BYTES = 1024 * 1024;
let kept: Buffer | undefined = Buffer.allocUnsafeSlow(KEPT_BYTES);

/**
 * Hands over what `readBytes` reads for as long as `use` runs, which keeps none of it: the next read writes over it.
 *
 * @param use Makes of the bytes what is wanted of them, without waiting.
 */
export const withBytes = async <T>(handle: FileHandle, size: number, use: (bytes: Buffer) => T): Promise<T> => {
  const mine = size <= KEPT_BYTES ? kept : undefined;
  if (mine === undefined) return use(await readBytes(handle, size));
  kept = undefined;
  try {
    return use(await readBytes(handle, size, mine));
  } finally {
    kept = mine;
  }
};

/** The same without waiting, for the thread that walks trees. */
export const readBytesSync = (fd: number, size: number = fstatSync(fd).size): Buffer => {
  const bytes = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const read = readSync(fd, bytes, filled, size - filled, filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
};
