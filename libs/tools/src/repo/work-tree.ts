import { createHash } from 'node:crypto';
import { closeSync } from 'node:fs';
import { err, ok } from '@sharedos/contracts';
import type { TreeFolder, TreeSteps } from '../confinement/tree-steps.ts';
import { readBytesSync } from '../files/file-content.ts';
import { type Refusable, attemptSync } from '../files/file-refusal.ts';
import { entriesIn } from '../files/folder-names.ts';

/** A file of a working tree, as Git would name what is in it, byte for byte. */
export interface WorkFile {
  /** Names joined by `/`. */
  readonly path: string;
  readonly mode: '100644' | '100755';
  readonly hash: string;
}

export interface WorkTree {
  readonly files: readonly WorkFile[];
  /** What is neither file nor folder, or a file with a second name: never read. */
  readonly links: readonly string[];
  /** The ignore files that were met, with their text. */
  readonly ignores: readonly { readonly path: string; readonly text: string }[];
}

const FILES_MAX = 20_000;
const BYTES_MAX = 512 * 1024 * 1024;
const IGNORE_BYTES_MAX = 64 * 1024;
const DEPTH_MAX = 128;

/** Looks through a working tree, link by link refused; the folders of other repositories inside it are not entered. */
export const readWorkTree = (steps: TreeSteps, parent: TreeFolder, name: string): Refusable<WorkTree> => {
  const files: WorkFile[] = [];
  const links: string[] = [];
  const ignores: { path: string; text: string }[] = [];
  let bytes = 0;

  const visitFile = (folder: TreeFolder, at: string, path: string): Refusable<void> => {
    const opened = steps.file(folder, at);
    if (!opened.ok) {
      if (opened.error === 'path_not_confined' || opened.error === 'not_a_file') links.push(path);
      return opened.error === 'file_not_found' || links.at(-1) === path ? ok(undefined) : opened;
    }
    const { fd, stats } = opened.value;
    try {
      bytes += Number(stats.size);
      if (files.length >= FILES_MAX || bytes > BYTES_MAX) return err('file_too_large');
      const content = attemptSync(() => readBytesSync(fd, Number(stats.size)));
      if (!content.ok) return content;
      files.push({ path, mode: (stats.mode & 0o100n) === 0n ? '100644' : '100755', hash: blobHash(content.value) });
      if (at === '.gitignore' && content.value.length <= IGNORE_BYTES_MAX) ignores.push({ path, text: content.value.toString('utf8') });
      return ok(undefined);
    } finally {
      closeSync(fd);
    }
  };

  const visitFolder = (above: TreeFolder, at: string, path: readonly string[]): Refusable<void> => {
    const folder = steps.folder(above, at);
    if (!folder.ok) return folder;
    try {
      if (path.length > DEPTH_MAX || (path.length > 0 && steps.stats(folder.value, '.git').ok)) return ok(undefined);
      const listed = entriesIn(folder.value);
      if (!listed.ok) return listed;
      for (const entry of listed.value) {
        const below = [...path, entry.name];
        const done = entry.isFolder ? visitFolder(folder.value, entry.name, below) : visitFile(folder.value, entry.name, below.join('/'));
        if (!done.ok && done.error !== 'file_not_found' && done.error !== 'not_a_directory') return done;
      }
      return ok(undefined);
    } finally {
      folder.value.close();
    }
  };

  const done = visitFolder(parent, name, []);
  return done.ok ? ok({ files, links, ignores }) : done;
};

export const blobHash = (content: Uint8Array): string =>
  createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
