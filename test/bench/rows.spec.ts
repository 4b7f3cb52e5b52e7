import { describe, expect, it } from 'vitest';
import { median, percentile, rowOf, tableOf } from './rows.ts';

describe('a percentile', () => {
  it('is a figure that was measured, by nearest rank', () => {
    expect(percentile([40, 10, 30, 20], 50)).toBe(20);
    expect(percentile([40, 10, 30, 20], 75)).toBe(30);
    expect(percentile([40, 10, 30, 20], 76)).toBe(40);
  });
  it('is the least at 0 and the greatest at 100', () => {
    expect(percentile([3, 1, 2], 0)).toBe(1);
    expect(percentile([3, 1, 2], 100)).toBe(3);
  });
  it('orders by size and not by spelling', () => expect(median([9, 10, 100])).toBe(10));
  it('leaves the figures it was given in their order', () => {
    const figures = [3, 1, 2];
    percentile(figures, 50);
    expect(figures).toEqual([3, 1, 2]);
  });
  it('of nothing is refused', () => expect(() => percentile([], 50)).toThrow(RangeError));
});

describe('a row', () => {
  const time = { name: 'call', unit: 'µs', values: [300, 100, 200] } as const;
  const rate = { name: 'calls', unit: '1/s', values: [9_000, 11_000, 10_000] } as const;

  it('states the median of its runs and how far they lay apart', () =>
    expect(rowOf(time)).toEqual({
      name: 'call',
      params: {},
      value: 200,
      unit: 'µs',
      floor: null,
      ratio: null,
      target: null,
      ok: null,
      spread: { min: 100, max: 300, runs: 3 },
    }));
  it('of a time is good up to its target ratio', () => {
    expect(rowOf({ ...time, floors: [200, 200, 200], target: 1 })).toMatchObject({ floor: 200, ratio: 1, ok: true });
    expect(rowOf({ ...time, floors: [190, 190, 190], target: 1 })).toMatchObject({ ratio: 1.05, ok: false });
  });
  it('of a time is neither good nor bad without a floor', () => expect(rowOf({ ...time, target: 1 }).ok).toBeNull());
  it('of a rate is good from its target value on, whatever the ratio', () => {
    expect(rowOf({ ...rate, floors: [50_000, 50_000, 50_000], target: 10_000 })).toMatchObject({ ratio: 0.2, ok: true });
    expect(rowOf({ ...rate, target: 10_001 }).ok).toBe(false);
  });
  it('has a ratio that is exactly what its printed value and floor give', () => {
    const { value, floor, ratio } = rowOf({ ...time, values: [123.456], floors: [78.912] });
    expect([value, floor, ratio]).toEqual([123, 78.9, 1.56]);
  });
  it('is the same after a journey as JSON', () => {
    const row = rowOf({ ...time, params: { tool: 'files.stat', calls: 200 }, floors: [1, 2, 3], target: 1 });
    expect(JSON.parse(JSON.stringify(row))).toEqual(row);
  });
});

describe('the table', () => {
  it('shows each row on a line, in columns', () =>
    expect(
      tableOf([
        rowOf({ name: 'request', unit: 'µs', values: [260, 250, 270] }),
        rowOf({ name: 'calls', params: { inFlight: 64 }, unit: '1/s', values: [12_345], floors: [24_690], target: 10_000 }),
        rowOf({ name: 'call', unit: 'µs', values: [1_500], floors: [1_000], target: 1 }),
      ]),
    ).toBe(
      [
        'what                    value         spread     floor  ratio      target',
        'request                260 µs        250–270',
        'calls (inFlight 64)  12 350/s  12 350–12 350  24 690/s  0.5 ×  ≥ 10 000/s     met',
        'call                 1 500 µs    1 500–1 500  1 000 µs  1.5 ×       ≤ 1 ×  missed',
      ].join('\n'),
    ));
});
