import { describe, expect, it } from 'vitest';
import { scheduleOf } from './schedule.ts';
import { ARROWS } from './steps.ts';
import { runStorm } from './storm.ts';

/** A small storm of its own seed; `npm run faults -- turns` is the whole one. */
const TURNS = 40;
const STORM_MS = 600_000;

describe('a schedule of faults', () => {
  it('follows from its seed alone', () => {
    expect(scheduleOf({ seed: 7, turns: 300 })).toEqual(scheduleOf({ seed: 7, turns: 300 }));
    expect(scheduleOf({ seed: 8, turns: 300 }).fates).not.toEqual(scheduleOf({ seed: 7, turns: 300 }).fates);
  });

  it('strikes before and after every arrow of every service in a run of full length', () => {
    const { fates } = scheduleOf({ seed: 1, turns: 2_000 });
    for (const [service, arrows] of Object.entries(ARROWS)) {
      const struck = new Set(fates[service as keyof typeof ARROWS].map(({ step }) => step));
      expect([...struck].toSorted()).toEqual(arrows.flatMap((arrow) => [`before ${arrow}`, `after ${arrow}`]).toSorted());
    }
  });
});

describe('turns under a storm', () => {
  it('have one end each, no effect twice, and spend no more and no less than they used', { timeout: STORM_MS }, async () => {
    const report = await runStorm({ seed: 3, turns: TURNS });
    expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
    expect(report.accepted).toBe(TURNS);
    expect(report.blows.length).toBeGreaterThan(0);
    expect(report.effects).toBeGreaterThan(0);
  });
});
