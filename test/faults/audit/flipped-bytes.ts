import { verifyExport } from '@sharedos/client';
import type { SignatureCheck } from '@sharedos/contracts';

interface Line {
  readonly type: string;
  readonly count?: number;
  readonly head?: { readonly count: number };
}

/**
 * Flips one bit of every byte of some lines of an export in turn: of each member of a record, its number, place and link, and of each
 * member of a head and its signature. @returns What was not found, or not at its line.
 */
export const flipBytes = async (
  lines: readonly string[],
  check: SignatureCheck,
  linesMax: number,
): Promise<{ readonly flips: number; readonly contradictions: readonly string[] }> => {
  const contradictions: string[] = [];
  let flips = 0;
  for (const index of spread(lines, linesMax)) {
    const text = lines[index] ?? '';
    const { count } = JSON.parse(text) as Line;
    // From the head before the line to the line itself: what is found is found there.
    const before = lines.slice(1, index);
    const from = before.findLastIndex((line) => line.startsWith('{"type":"head"'));
    const { type: _, ...sealed } = from < 0 ? { type: '' } : (JSON.parse(before[from] ?? '') as Line);
    const header = JSON.stringify({ ...(JSON.parse(lines[0] ?? '') as Line), ...(from < 0 ? {} : { from: sealed }) });
    const slice = [header, ...before.slice(from + 1)];
    for (let at = 0; at < text.length; at += 1) {
      const flipped = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
      const verdict = await verifyExport([...slice, flipped], check);
      flips += 1;
      const isFound =
        !verdict.sound &&
        verdict.fault.line === slice.length + 1 &&
        (count === undefined || !('first' in verdict.fault) || verdict.fault.first === count);
      if (!isFound) contradictions.push(`line ${index + 1}, byte ${at + 1}: ${JSON.stringify(verdict)}`);
    }
  }
  return { flips, contradictions };
};

/** So many lines, of records and of heads, evenly over all of them. */
const spread = (lines: readonly string[], max: number): readonly number[] => {
  const each = (type: string): readonly number[] => {
    const places = lines.flatMap((line, index) => (line.startsWith(`{"type":"${type}"`) ? [index] : []));
    const step = Math.max(1, Math.floor(places.length / max));
    return places.filter((_, number) => number % step === 0).slice(0, max);
  };
  return [...each('record'), ...each('head')];
};
