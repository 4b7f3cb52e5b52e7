import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Result, err, ok } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { z } from 'zod';
import type { LoadedSections, Sections } from './columns.ts';

/** Changes with every change of what the sections hold: a snapshot of another format is left alone, and the log is read instead. */
export const SNAPSHOT_FORMAT = 1;

const MAGIC = Buffer.from('sharedos snapshot\n');
const LENGTH_BYTES = 4;
const SEAL_BYTES = 32;
const HEAD_BYTES_MAX = 1024 * 1024;

const Head = z.strictObject({
  format: z.int(),
  storeId: z.string(),
  position: z.number().min(0),
  /** Names and sizes, in the order in which they follow. */
  sections: z.array(z.tuple([z.string(), z.int().min(0)])),
});
type Head = z.infer<typeof Head>;

export interface Snapshot {
  /** Everything up to here is in it, and nothing after. */
  readonly position: Position;
  readonly sections: LoadedSections;
}

export interface SnapshotPlace {
  readonly path: string;
  /** Identity of the log that it was made of. */
  readonly storeId: string;
  /** Seals it: a snapshot confers authority, so one that we did not write counts as damaged. */
  readonly secret: string;
}

/**
 * Writes a snapshot beside its place and then puts it there at once, so that whoever reads finds the old one or the new one whole.
 * Several replicas may share a place: each writes what is true of the log.
 *
 * @throws When the file cannot be written; what was there before is still there.
 */
export const writeSnapshot = async ({ path, storeId, secret }: SnapshotPlace, position: Position, sections: Sections): Promise<void> => {
  const sizes = Array.from(sections, ([name, parts]): [string, number] => [name, parts.reduce((sum, part) => sum + part.byteLength, 0)]);
  const head = Buffer.from(JSON.stringify({ format: SNAPSHOT_FORMAT, storeId, position, sections: sizes } satisfies Head));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(head.byteLength);
  const beside = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`;
  const seal = sealFrom(secret);
  await mkdir(dirname(path), { recursive: true });
  const file = await open(beside, 'wx', 0o600);
  try {
    // One part after the other: hashing one is a few milliseconds, in which nothing else is answered.
    for (const part of [MAGIC, length, head, ...[...sections.values()].flat()]) {
      seal.update(part);
      await writeAll(file, part);
    }
    await writeAll(file, seal.digest());
    await file.sync();
    await file.close();
    await rename(beside, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(beside, { force: true });
    throw error;
  }
};

/** @returns The snapshot; `undefined` where there is none; or why the one that is there cannot be used. */
export const readSnapshot = async ({ path, storeId, secret }: SnapshotPlace): Promise<Result<Snapshot | undefined, string>> => {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => error);
  if (file instanceof Error) return file.code === 'ENOENT' ? ok(undefined) : err(`it cannot be opened (${file.code})`);
  try {
    return await readFrom(file, storeId, secret);
  } catch (error) {
    return err(`it cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  } finally {
    await file.close();
  }
};

const readFrom = async (file: FileHandle, storeId: string, secret: string): Promise<Result<Snapshot, string>> => {
  const damaged = err('it is damaged, or sealed with another secret');
  const { size } = await file.stat();
  const start = MAGIC.byteLength + LENGTH_BYTES;
  const seal = sealFrom(secret);
  if (size < start) return damaged;
  const opening = await bytesAt(file, 0, start);
  const headBytes = Buffer.from(opening.buffer).readUInt32BE(MAGIC.byteLength);
  if (!MAGIC.equals(opening.subarray(0, MAGIC.byteLength)) || headBytes > HEAD_BYTES_MAX || start + headBytes > size) return damaged;
  const headText = await bytesAt(file, start, headBytes);
  seal.update(opening).update(headText);
  const head = headOf(headText);
  if (head === undefined) return damaged;
  if (head.format !== SNAPSHOT_FORMAT) return err(`it is of format ${head.format}, and this release reads ${SNAPSHOT_FORMAT}`);
  if (head.storeId !== storeId) return err('it is of another log');
  let at = start + headBytes;
  if (head.sections.reduce((sum, [, bytes]) => sum + bytes, at) + SEAL_BYTES !== size) return damaged;
  const sections = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const [name, bytes] of head.sections) {
    const section = await bytesAt(file, at, bytes);
    seal.update(section);
    sections.set(name, section);
    at += bytes;
  }
  return timingSafeEqual(seal.digest(), await bytesAt(file, at, SEAL_BYTES)) ? ok({ position: head.position, sections }) : damaged;
};

const headOf = (text: Uint8Array): Head | undefined => {
  try {
    return Head.safeParse(JSON.parse(Buffer.from(text).toString('utf8'))).data;
  } catch {
    return undefined;
  }
};

const sealFrom = (secret: string) => createHmac('sha256', createHmac('sha256', secret).update('authority snapshot').digest());

/** In memory of its own, so that a column that outgrows it lets go of it. */
const bytesAt = async (file: FileHandle, at: number, bytes: number): Promise<Uint8Array<ArrayBuffer>> => {
  const read = new Uint8Array(bytes);
  for (let done = 0; done < bytes;) {
    const { bytesRead } = await file.read(read, done, bytes - done, at + done);
    if (bytesRead === 0) throw new RangeError('the file ends early');
    done += bytesRead;
  }
  return read;
};

const writeAll = async (file: FileHandle, part: Uint8Array): Promise<void> => {
  for (let done = 0; done < part.byteLength;) done += (await file.write(part, done)).bytesWritten;
};
