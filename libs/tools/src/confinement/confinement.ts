import { existsSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { ContractError } from '@sharedos/kernel';
import { checkedPaths } from './checked-paths.ts';
import { descriptorPaths } from './descriptor-paths.ts';
import type { Refusable } from '../files/file-refusal.ts';

/** An open folder inside the confined tree. `at` is a path for the file system: reading it, or one single name below it. */
export interface Folder {
  readonly at: string;
  close(): Promise<void>;
}

/**
 * The only ways to get from a folder to what is in it. Each takes exactly one step by one name, and no step follows a link, also
 * not one that points back inside: where a link leads can change between looking and using.
 *
 * A file with more names than one (a hard link) is refused like a link. Not covered, because no path tells: mounts inside.
 */
export interface Confinement {
  /** The provider's root. The host chose it, so links in the way to it are followed. */
  root(path: string): Promise<Refusable<Folder>>;
  folder(parent: Folder, name: string): Promise<Refusable<Folder>>;
  /** A file or a folder; `path_not_confined` for a link, `not_a_file` for a fifo, socket or device. */
  stats(parent: Folder, name: string): Promise<Refusable<BigIntStats>>;
  /** Opens an existing regular file with `flags`; never blocks on, and never wakes, a fifo or device. */
  file(parent: Folder, name: string, flags: number): Promise<Refusable<FileHandle>>;
  /** Whether `folder` still is where it was, asked after something was made in it. */
  confirm(folder: Folder): Promise<Refusable<void>>;
}

/**
 * `descriptors` (Linux) has no race: every step is taken from an open folder. `checked-paths` (elsewhere) looks at each component
 * and compares real paths before and after; someone who can rename folders on the host at the right instant can still win.
 */
export type ConfinementKind = 'descriptors' | 'checked-paths';

export const confinementKind = (wanted?: ConfinementKind): ConfinementKind =>
  wanted ?? (process.platform === 'linux' ? 'descriptors' : 'checked-paths');

/** @throws ContractError where that kind is not possible. */
export const confinementOf = (kind: ConfinementKind): Confinement => {
  if (kind === 'checked-paths') return checkedPaths;
  if (process.platform !== 'linux' || !existsSync('/proc/self/fd')) {
    // Without /proc every step would answer "not found", and a full folder would look empty.
    throw new ContractError('confinement by descriptors needs Linux with /proc');
  }
  return descriptorPaths;
};
