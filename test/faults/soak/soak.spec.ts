import { describe, expect, it } from 'vitest';
import { type Sample, judgeSoak } from './judge-soak.ts';
import { runSoak } from './run-soak.ts';

const MIB = 1024 * 1024;
const series = (what: Sample['what'], value: (at: number) => number): readonly Sample[] =>
  Array.from({ length: 30 }, (_, at) => ({ of: 'executor 1', what, value: value(at) }));
const flat = [...series('bytes', () => 100 * MIB), ...series('files', () => 30), ...series('consumers', () => 3)];
const broken = (changed: readonly Sample[]): readonly string[] =>
  judgeSoak([...flat.filter(({ what }) => what !== changed[0]?.what), ...changed])
    .filter(({ contradictions }) => contradictions.length > 0)
    .map(({ rule }) => rule);

describe('what a run held', () => {
  it('is flat', () => expect(broken(flat)).toEqual([]));
  it('is flat although it grew at first', () => expect(broken(series('bytes', (at) => Math.min(at, 10) * 20 * MIB))).toEqual([]));
  it.each<[Sample['what'], (at: number) => number, string]>([
    ['bytes', (at) => (100 + 6 * at) * MIB, 'memory is flat'],
    ['files', (at) => 30 + at, 'open files and connections are flat'],
    ['consumers', (at) => 3 + Math.floor(at / 3), 'consumers of the streams are flat'],
  ])('is not, when %s go on growing', (what, value, rule) => expect(broken(series(what, value))).toEqual([rule]));
  it('is not said to be flat where it was not measured', () => {
    expect(judgeSoak([]).every(({ contradictions }) => contradictions.length > 0)).toBe(true);
    expect(broken([{ of: 'executor 1', what: 'files', value: 1 }])).toEqual(['open files and connections are flat']);
  });
});

describe('the whole system under turns of clients that come and go', () => {
  it('answers each, and holds no more at the end than in the middle', { timeout: 300_000 }, async () => {
    const report = await runSoak({ turns: 300 });
    expect(report.turns).toBeGreaterThanOrEqual(300);
    expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
  });
});
