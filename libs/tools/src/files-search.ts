import { constants } from 'node:fs';
import { type Instant, err, ok } from '@sharedos/contracts';
import type { Confinement, Folder } from './confinement.ts';
import { readBytes, textOf } from './file-content.ts';
import { type FileRefusal, type Refusable, attempt } from './file-refusal.ts';
import type { FilesSearchOutput } from './files-schemas.ts';
import { namesIn } from './folder-names.ts';

/** What one search may cost at most; at any of these it stops and says `truncated`. */
export interface SearchBounds {
  readonly matchesMax: number;
  readonly filesMax: number;
  readonly entriesMax: number;
  readonly bytesMax: number;
  readonly fileBytesMax: number;
  readonly timeMs: number;
}

const SEGMENTS_MAX = 64;
const TEXT_UNITS_MAX = 512;
/** How much of a long line is shown before the first hit in it. */
const TEXT_UNITS_BEFORE = 128;

/**
 * Looks for literal text, letter case ignored, in the lines of the text files at or below one place, in order of path. Links
 * are never followed and other kinds of files are passed over. Nothing outside the subtree is even looked at, so neither
 * matches nor counts nor `truncated` tell of it. A query that holds a line break matches nothing.
 */
export const searchBelow = async (
  confinement: Confinement,
  start: { readonly parent: Folder; readonly name: string; readonly path: readonly string[] },
  query: string,
  bounds: SearchBounds,
  now: () => Instant,
  cancel: AbortSignal,
): Promise<Refusable<FilesSearchOutput>> => {
  const wanted = query.toLowerCase();
  const deadline = now() + bounds.timeMs;
  const matches: FilesSearchOutput['matches'] = [];
  const left = { files: bounds.filesMax, entries: bounds.entriesMax, bytes: bounds.bytesMax };
  let truncated = false;

  /** True, and marked, when a bound is reached: the walk then unwinds without looking at anything more. */
  const spent = (): boolean => {
    const used = matches.length >= bounds.matchesMax || Math.min(left.files, left.entries, left.bytes) <= 0;
    if (!used && !cancel.aborted && now() <= deadline) return false;
    truncated = true;
    return true;
  };

  const visitFile = async (parent: Folder, name: string, path: readonly string[]): Promise<FileRefusal | undefined> => {
    const opened = await confinement.file(parent, name, constants.O_RDONLY);
    if (!opened.ok) return opened.error;
    try {
      left.files -= 1;
      const found = await attempt(() => opened.value.stat());
      if (!found.ok) return found.error;
      if (found.value.size > Math.min(bounds.fileBytesMax, left.bytes)) {
        truncated = true;
        return undefined;
      }
      left.bytes -= found.value.size;
      const bytes = await attempt(() => readBytes(opened.value, found.value.size));
      if (!bytes.ok) return bytes.error;
      for (const hit of linesWith(textOf(bytes.value) ?? '', wanted)) {
        if (matches.length >= bounds.matchesMax) {
          truncated = true;
          break;
        }
        matches.push({ path: [...path], ...hit });
      }
      return undefined;
    } finally {
      await opened.value.close();
    }
  };

  const visitFolder = async (parent: Folder, name: string, path: readonly string[]): Promise<FileRefusal | undefined> => {
    const folder = await confinement.folder(parent, name);
    if (!folder.ok) return folder.error;
    try {
      const listed = await namesIn(folder.value, left.entries);
      if (!listed.ok) return listed.error;
      if (!listed.value.complete) truncated = true;
      for (const child of listed.value.names) {
        if (spent()) break;
        // A file or folder that vanished or changed meanwhile is passed over; only the place asked for must be there.
        await visit(folder.value, child, [...path, child]);
      }
      return undefined;
    } finally {
      await folder.value.close();
    }
  };

  const visit = async (parent: Folder, name: string, path: readonly string[]): Promise<FileRefusal | undefined> => {
    // Deeper than a path can say: a match could not be named.
    if (path.length > SEGMENTS_MAX) return undefined;
    left.entries -= 1;
    const found = await confinement.stats(parent, name);
    if (!found.ok) return found.error;
    return found.value.isDirectory() ? visitFolder(parent, name, path) : visitFile(parent, name, path);
  };

  const refusal = await visit(start.parent, start.name, start.path);
  if (cancel.aborted) return err('operation_cancelled');
  return refusal === undefined ? ok({ matches, truncated }) : err(refusal);
};

function* linesWith(text: string, wanted: string): Generator<{ line: number; text: string }> {
  // Most files have no hit: one look at the whole text spares the cutting into lines.
  if (!text.toLowerCase().includes(wanted)) return;
  let number = 0;
  for (const line of text.split(/\r?\n/)) {
    number += 1;
    const at = line.toLowerCase().indexOf(wanted);
    if (at >= 0) yield { line: number, text: excerpt(line, at) };
  }
}

/** A long line is cut around its first hit, never through a surrogate pair. */
const excerpt = (line: string, at: number): string => {
  if (line.length <= TEXT_UNITS_MAX) return line;
  const from = Math.max(0, at - TEXT_UNITS_BEFORE);
  const cut = line.slice(from, from + TEXT_UNITS_MAX);
  return cut.replace(/^[\uDC00-\uDFFF]/, '').replace(/[\uD800-\uDBFF]$/, '');
};
