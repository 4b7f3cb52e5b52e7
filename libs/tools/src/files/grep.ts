import { err, ok } from '@sharedos/contracts';
import { RE2JS } from 're2js';
import type { TreeSteps } from '../confinement/tree-steps.ts';
import type { Refusable } from './file-refusal.ts';
import type { FilesGrepInput, FilesGrepOutput } from './files-schemas.ts';
import { type ScanBounds, type ScanControl, type ScanStart, Scan, excerpt, linesOf } from './scan.ts';

const MATCHES_MAX = 1_000;
/** Text of all matches with the lines around them, so that the answer fits a tool result. */
const TEXT_UNITS_MAX = 1_000_000;

/** Where in a line the pattern first is, or -1. */
type Find = (line: string) => number;

/**
 * The lines at or below a place that hold a pattern. A regular expression is RE2's kind: its time grows with the text and the
 * pattern, never beyond, and there are no back references and no lookaround to make it so.
 */
export const grepBelow = (
  steps: TreeSteps,
  start: ScanStart,
  input: FilesGrepInput,
  bounds: ScanBounds,
  control: ScanControl,
): Refusable<FilesGrepOutput> => {
  const find = finder(input);
  if (!find.ok) return find;
  const matches: FilesGrepOutput['matches'] = [];
  let units = TEXT_UNITS_MAX;
  let full = false;
  const scan = new Scan(steps, bounds, control);
  const done = scan.run(start, (path, text) => {
    if (text === undefined || !mayHold(input, text)) return true;
    const lines = linesOf(text);
    for (const [index, line] of lines.entries()) {
      if (scan.stopInside()) return false;
      const at = find.value(line);
      if (at < 0) continue;
      const around = (from: number, to: number): string[] => lines.slice(Math.max(0, from), to).map((other) => excerpt(other, 0));
      const match = {
        path: [...path],
        line: index + 1,
        text: excerpt(line, at),
        before: around(index - input.contextBefore, index),
        after: around(index + 1, index + 1 + input.contextAfter),
      };
      units -= [match.text, ...match.before, ...match.after].reduce((sum, shown) => sum + shown.length + 1, 0);
      full = matches.length === MATCHES_MAX || units < 0;
      if (full) return false;
      matches.push(match);
    }
    return true;
  });
  return done.ok ? ok({ matches, truncated: done.value.truncated || full }) : done;
};

/** Most files have no hit: one look at the whole text spares the cutting into lines. A pattern that matches across lines matches nothing. */
const mayHold = ({ mode, pattern, caseSensitive }: FilesGrepInput, text: string): boolean =>
  mode === 'regex' || (caseSensitive ? text.includes(pattern) : text.toLowerCase().includes(pattern.toLowerCase()));

const finder = ({ mode, pattern, caseSensitive }: FilesGrepInput): Refusable<Find> => {
  if (mode === 'literal') {
    const wanted = caseSensitive ? pattern : pattern.toLowerCase();
    return ok((line) => (caseSensitive ? line : line.toLowerCase()).indexOf(wanted));
  }
  try {
    const compiled = RE2JS.compile(pattern, caseSensitive ? 0 : RE2JS.CASE_INSENSITIVE);
    return ok((line) => {
      const matcher = compiled.matcher(line);
      return matcher.find() ? matcher.start() : -1;
    });
  } catch {
    // Whatever the library does not take, it says so by throwing.
    return err('pattern_refused');
  }
};
