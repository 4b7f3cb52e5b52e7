import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import type { Confinement, Folder } from '../confinement/confinement.ts';
import { type Refusable, attempt } from './file-refusal.ts';

const FOLDER_MODE = 0o750;

/** Ways through one provider's root, each step confined. */
export class ConfinedTree {
  readonly confinement: Confinement;
  readonly #root: string;

  constructor(confinement: Confinement, root: string) {
    this.confinement = confinement;
    this.#root = root;
  }

  /** Walks to a folder, one step at a time, and hands it over open; with `make`, what is missing on the way is made. */
  async inFolder<T>(names: readonly string[], make: boolean, use: (folder: Folder) => Promise<Refusable<T>>): Promise<Refusable<T>> {
    const start = await this.confinement.root(this.#root);
    if (!start.ok) return start;
    let folder = start.value;
    try {
      for (const name of names) {
        let next = await this.confinement.folder(folder, name);
        if (make && !next.ok && next.error === 'file_not_found') {
          const made = await this.#make(folder, name);
          if (!made.ok) return made;
          next = await this.confinement.folder(folder, name);
        }
        if (!next.ok) return next;
        await folder.close();
        folder = next.value;
      }
      return await use(folder);
    } finally {
      await folder.close();
    }
  }

  async #make(parent: Folder, name: string): Promise<Refusable<void>> {
    const made = await attempt(() => mkdir(`${parent.at}/${name}`, FOLDER_MODE));
    // Someone else was first: the step that follows looks at what is there, as at anything else.
    if (!made.ok && made.error !== 'file_exists') return made;
    const confirmed = await this.confinement.confirm(parent);
    return confirmed.ok ? syncFolder(parent) : confirmed;
  }

  /** Opens a regular file for reading, with what it was when it was opened. */
  async withFile<T>(
    parent: Folder,
    name: string,
    use: (file: FileHandle, stats: BigIntStats) => Promise<Refusable<T>>,
  ): Promise<Refusable<T>> {
    const file = await this.confinement.file(parent, name, constants.O_RDONLY);
    if (!file.ok) return file;
    try {
      const stats = await attempt(() => file.value.stat({ bigint: true }));
      return stats.ok ? await use(file.value, stats.value) : stats;
    } finally {
      await file.value.close();
    }
  }
}

/** Makes the names in a folder outlive a power cut. */
export const syncFolder = (folder: Folder): Promise<Refusable<void>> =>
  attempt(async () => {
    const handle = await open(`${folder.at}/.`, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0));
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  });
