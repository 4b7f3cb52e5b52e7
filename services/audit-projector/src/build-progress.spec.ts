import { describe, expect, it } from 'vitest';
import { BuildProgress } from './build-progress.ts';

const building = (from: number, upTo: number, everyMs = 0) => {
  const lines: [string, Readonly<Record<string, unknown>>][] = [];
  let position = from;
  const progress = new BuildProgress({ position: () => position, upTo, everyMs, log: (event, fields) => void lines.push([event, fields]) });
  return {
    progress,
    lines,
    foldTo: (place: number): void => {
      position = place;
      progress.folded();
    },
  };
};

describe('a read model that is being built', () => {
  it('says how far it is, in the log and to whoever asks, and when it is done', () => {
    const { progress, lines, foldTo } = building(0, 400);
    expect(progress.missing).toBe('the read model is being built: 0 of 400 records, 0 %');
    foldTo(130);
    expect(progress.missing).toBe('the read model is being built: 130 of 400 records, 32 %');
    foldTo(400);
    expect(progress.missing).toBeUndefined();
    expect(lines).toEqual([
      ['building the read model', { position: 0, of: 400, percent: 0 }],
      ['building the read model', { position: 130, of: 400, percent: 32 }],
      ['the read model is built', { records: 400, seconds: expect.any(Number) }],
    ]);
  });

  it('is built for good: what comes later is lag, and no building', () => {
    const { progress, lines, foldTo } = building(0, 10);
    foldTo(10);
    foldTo(11);
    expect(progress.missing).toBeUndefined();
    expect(lines).toHaveLength(2);
  });

  it('does not fill the log', () => {
    const { lines, foldTo } = building(0, 1_000, 60_000);
    for (let place = 1; place < 1_000; place += 1) foldTo(place);
    expect(lines).toHaveLength(1);
  });

  it('says nothing where it was kept and nothing is missing', () => {
    const { progress, lines } = building(12, 12);
    expect([progress.missing, lines]).toEqual([undefined, []]);
  });
});
