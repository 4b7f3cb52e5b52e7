import { describe, expect, it } from 'vitest';
import { BUCKETS, Measurements, SERIES_MAX } from './measurements.ts';
import { METRIC, type MetricSpec } from './metric.ts';

describe('what a process counts', () => {
  it('is kept apart by its labels', () => {
    const measured = new Measurements();
    measured.count('decisions', 'allowed', 'allowed');
    measured.count('decisions', 'denied', 'no_matching_grant');
    measured.add('decisions', 2, 'denied', 'no_matching_grant');
    expect(measured.counters('decisions')).toEqual([
      { labels: ['allowed', 'allowed'], value: 1 },
      { labels: ['denied', 'no_matching_grant'], value: 3 },
    ]);
  });

  it('has no more series than it may, however many tenants there are, and loses no count', () => {
    const measured = new Measurements();
    for (let tenant = 0; tenant < SERIES_MAX + 50; tenant += 1) measured.count('limitsHit', `tenant-${tenant}`, 'inbox_full');
    const series = measured.counters('limitsHit');
    expect(series).toHaveLength(SERIES_MAX + 1);
    expect(series.at(-1)).toEqual({ labels: ['other', 'other'], value: 50 });
    expect(series.reduce((sum, { value }) => sum + value, 0)).toBe(SERIES_MAX + 50);
  });

  it('falls into the first bucket that holds it, and the last holds the rest', () => {
    const measured = new Measurements();
    for (const seconds of [0, 0.001, 0.0011, 10_000]) measured.time('turnSeconds', seconds);
    const [series] = measured.histograms('turnSeconds');
    expect(series?.value.counts.flatMap((count, at) => (count === 0 ? [] : [[BUCKETS[at] ?? Infinity, count]]))).toEqual([
      [0.000_25, 1],
      [0.001, 1],
      [0.002_5, 1],
      [Infinity, 1],
    ]);
    expect(series?.value.count).toBe(4);
  });
});

describe('the names of metrics', () => {
  const specs: readonly MetricSpec[] = Object.values(METRIC);
  it('are of Prometheus, and each is there once', () => {
    for (const { name } of specs) expect(name).toMatch(/^sharedos_[a-z_]+$/);
    expect(new Set(specs.map(({ name }) => name)).size).toBe(specs.length);
  });
  it('end with the unit, where there is one, and never with what the exporter adds', () => {
    for (const { name, kind } of specs) {
      expect(name).not.toMatch(/_(total|count|sum|bucket)$/);
      if (kind === 'histogram') expect(name).toMatch(/_seconds$/);
    }
  });
});
