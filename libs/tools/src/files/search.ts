import { byCodeUnit, ok } from '@sharedos/contracts';
import type { TreeSteps } from '../confinement/tree-steps.ts';
import type { Refusable } from './file-refusal.ts';
import type { FilesSearchInput, FilesSearchOutput } from './files-schemas.ts';
import { type ScanBounds, type ScanControl, type ScanStart, Scan, excerpt, linesOf } from './scan.ts';

const MATCHES_MAX = 100;
/** More words of one query, or more hits of one word in a file, change no order that somebody would notice. */
const WORDS_MAX = 32;
const HITS_MAX = 64;
const PHRASE_SCORE = 8;
const NAME_SCORE = 4;

interface Query {
  readonly phrase: string;
  readonly words: readonly string[];
}
type Match = FilesSearchOutput['matches'][number];

/**
 * The files at or below a place whose name or text holds every word of the query, letter case ignored, the best first. A score
 * depends on the query and the one file alone, so it tells nothing of other files.
 */
export const searchBelow = (
  steps: TreeSteps,
  start: ScanStart,
  { query, limit = MATCHES_MAX }: FilesSearchInput,
  bounds: ScanBounds,
  control: ScanControl,
): Refusable<FilesSearchOutput> => {
  const phrase = query.toLowerCase();
  const asked: Query = { phrase, words: [...new Set(phrase.split(/\s+/))].slice(0, WORDS_MAX) };
  const best: Match[] = [];
  let fitting = 0;
  const scan = new Scan(steps, bounds, control);
  const done = scan.run(start, (path, text = '') => {
    const lower = text.toLowerCase();
    const score = scoreOf(asked, path.at(-1)?.toLowerCase() ?? '', lower);
    if (score === 0 || path.length === 0) return true;
    fitting += 1;
    const last = best.at(-1);
    if (best.length === limit && last !== undefined && last.score >= score) return true;
    // Files come in order of path, so behind its equals is where this one belongs.
    const place = best.findIndex((other) => other.score < score);
    best.splice(place < 0 ? best.length : place, 0, { path: [...path], score, ...bestLine(asked, text) });
    if (best.length > limit) best.pop();
    return true;
  });
  return done.ok ? ok({ matches: best.sort(byRank), truncated: done.value.truncated || fitting > best.length }) : done;
};

const byRank = (a: Match, b: Match): number => b.score - a.score || byCodeUnit(a.path.join('/'), b.path.join('/'));

/** 0 when a word is missing. The whole query as it is written counts most, then words in the name, then how often a word is there. */
const scoreOf = ({ phrase, words }: Query, name: string, text: string): number => {
  let score = 0;
  for (const word of words) {
    const hits = count(text, word);
    const named = name.includes(word);
    if (hits === 0 && !named) return 0;
    score += (named ? NAME_SCORE : 0) + (hits === 0 ? 0 : 1 + Math.log2(hits));
  }
  if (words.length > 1 && (text.includes(phrase) || name.includes(phrase))) score += PHRASE_SCORE;
  return Math.round(score * 1_000) / 1_000;
};

const count = (text: string, word: string): number => {
  let hits = 0;
  for (let at = text.indexOf(word); at >= 0 && hits < HITS_MAX; at = text.indexOf(word, at + word.length)) hits += 1;
  return hits;
};

/** The first line with the whole query, or else with the most of its words. */
const bestLine = ({ phrase, words }: Query, text: string): { readonly line?: number; readonly text?: string } => {
  let found: { line: number; text: string } | undefined;
  let most = 0;
  for (const [index, line] of linesOf(text).entries()) {
    const lower = line.toLowerCase();
    const at = lower.indexOf(phrase);
    if (at >= 0) return { line: index + 1, text: excerpt(line, at) };
    const held = words.filter((word) => lower.includes(word));
    if (held.length <= most) continue;
    most = held.length;
    found = { line: index + 1, text: excerpt(line, lower.indexOf(held[0] ?? '')) };
  }
  return found ?? {};
};
