import { closeSync } from 'node:fs';
import { err, ok } from '@sharedos/contracts';
import type { TreeFolder, TreeSteps } from '../confinement/tree-steps.ts';
import { readBytesSync, textOf } from './file-content.ts';
import { type FileRefusal, type Refusable, attemptSync } from './file-refusal.ts';
import { entriesIn } from './folder-names.ts';

/** What one search may cost at most; at any of these it stops and says `truncated`. */
export interface ScanBounds {
  readonly filesMax: number;
  readonly entriesMax: number;
  readonly bytesMax: number;
  readonly fileBytesMax: number;
  readonly timeMs: number;
}

/** Where a scan begins: `name` in `parent`, which is `path` from the root of the namespace. */
export interface ScanStart {
  readonly parent: TreeFolder;
  readonly name: string;
  readonly path: readonly string[];
}

/** How a scan is stopped from outside. */
export interface ScanControl {
  readonly now: () => number;
  readonly cancelled: () => boolean;
}

const SEGMENTS_MAX = 64;
/** Looking at the clock for every line would cost more than looking at the line. */
const LINES_PER_LOOK = 256;

/**
 * Hands the text files at or below one place to `look`, in order of path, until that says that it has enough. Links are never
 * followed and other kinds of files are passed over. Nothing outside the subtree is even looked at, so neither matches nor counts
 * nor `truncated` tell of it.
 */
export class Scan {
  readonly #steps: TreeSteps;
  readonly #bounds: ScanBounds;
  readonly #control: ScanControl;
  readonly #left: { files: number; entries: number; bytes: number };
  readonly #deadline: number;
  #lines = 0;
  /** Not everything was looked at. */
  truncated = false;

  constructor(steps: TreeSteps, bounds: ScanBounds, control: ScanControl) {
    this.#steps = steps;
    this.#bounds = bounds;
    this.#control = control;
    this.#left = { files: bounds.filesMax, entries: bounds.entriesMax, bytes: bounds.bytesMax };
    this.#deadline = control.now() + bounds.timeMs;
  }

  /** `look` gets the path and the text, which is absent for what is no text or too large; it answers false when it has enough. */
  run(
    { parent, name, path }: ScanStart,
    look: (path: readonly string[], text: string | undefined) => boolean,
  ): Refusable<{ readonly truncated: boolean }> {
    const refusal = this.#visit(parent, name, path, look);
    if (this.#control.cancelled()) return err('operation_cancelled');
    return refusal === undefined || refusal === 'enough' ? ok({ truncated: this.truncated }) : err(refusal);
  }

  /** Asked while one file is looked at, line by line: whether to stop inside it. */
  stopInside(): boolean {
    this.#lines += 1;
    return this.#lines % LINES_PER_LOOK === 0 && this.#late();
  }

  #late(): boolean {
    if (!this.#control.cancelled() && this.#control.now() <= this.#deadline) return false;
    this.truncated = true;
    return true;
  }

  /** True, and marked, when a bound is reached: the walk then unwinds without looking at anything more. */
  #spent(): boolean {
    if (Math.min(this.#left.files, this.#left.entries, this.#left.bytes) > 0) return this.#late();
    this.truncated = true;
    return true;
  }

  #visit(parent: TreeFolder, name: string, path: readonly string[], look: Parameters<Scan['run']>[1]): FileRefusal | 'enough' | undefined {
    const found = this.#steps.stats(parent, name);
    if (!found.ok) return found.error;
    return found.value.isDirectory() ? this.#folder(parent, name, path, look) : this.#file(parent, name, path, look);
  }

  #folder(parent: TreeFolder, name: string, path: readonly string[], look: Parameters<Scan['run']>[1]): FileRefusal | 'enough' | undefined {
    const folder = this.#steps.folder(parent, name);
    if (!folder.ok) return folder.error;
    try {
      const listed = entriesIn(folder.value);
      if (!listed.ok) return listed.error;
      for (const entry of listed.value) {
        if (this.#spent()) return undefined;
        this.#left.entries -= 1;
        // Deeper than a path can say: a match could not be named.
        if (path.length >= SEGMENTS_MAX) return undefined;
        // A file or folder that vanished or changed meanwhile is passed over; only the place asked for must be there.
        const below = [...path, entry.name];
        const refusal = entry.isFolder
          ? this.#folder(folder.value, entry.name, below, look)
          : entry.isFile
            ? this.#file(folder.value, entry.name, below, look)
            : undefined;
        if (refusal === 'enough') return refusal;
      }
      return undefined;
    } finally {
      folder.value.close();
    }
  }

  #file(parent: TreeFolder, name: string, path: readonly string[], look: Parameters<Scan['run']>[1]): FileRefusal | 'enough' | undefined {
    const opened = this.#steps.file(parent, name);
    if (!opened.ok) return opened.error;
    const { fd, stats } = opened.value;
    try {
      this.#left.files -= 1;
      const size = Number(stats.size);
      if (size > Math.min(this.#bounds.fileBytesMax, this.#left.bytes)) {
        this.truncated = true;
        return look(path, undefined) ? undefined : 'enough';
      }
      this.#left.bytes -= size;
      const bytes = attemptSync(() => readBytesSync(fd, size));
      if (!bytes.ok) return bytes.error;
      return look(path, textOf(bytes.value)) ? undefined : 'enough';
    } finally {
      closeSync(fd);
    }
  }
}

const TEXT_UNITS_MAX = 512;
/** How much of a long line is shown before the first hit in it. */
const TEXT_UNITS_BEFORE = 128;

/** A long line is cut around its first hit, never through a surrogate pair. */
export const excerpt = (line: string, at: number): string => {
  if (line.length <= TEXT_UNITS_MAX) return line;
  const from = Math.max(0, at - TEXT_UNITS_BEFORE);
  const cut = line.slice(from, from + TEXT_UNITS_MAX);
  return cut.replace(/^[\uDC00-\uDFFF]/, '').replace(/[\uD800-\uDBFF]$/, '');
};

export const linesOf = (text: string): readonly string[] => {
  const lines = text.split(/\r?\n/);
  // What follows the last line break is no line when there is nothing.
  if (lines.length > 1 && lines.at(-1) === '') lines.pop();
  return lines;
};
