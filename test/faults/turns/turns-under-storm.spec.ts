import { describe, expect, it } from 'vitest';
import { scheduleOf } from './storm-schedule.ts';
import { ARROWS } from './steps.ts';
import { runStorm } from './storm.ts';

/** A small storm of its own seed; `npm run faults -- turns` is the whole one. */
const TURNS = 40;
/** `npm run faults -- killed-after-effect --turns 209` is the whole of it. */
const DEATHS = 4;
const STORM_MS = 600_000;

describe('a schedule of faults', () => {
  it('follows from its seed alone', () => {
    expect(scheduleOf({ kind: 'turns', seed: 7, turns: 300 })).toEqual(scheduleOf({ kind: 'turns', seed: 7, turns: 300 }));
    expect(scheduleOf({ kind: 'turns', seed: 8, turns: 300 }).fates).not.toEqual(scheduleOf({ kind: 'turns', seed: 7, turns: 300 }).fates);
  });

  it('strikes before and after every arrow of every service in a run of full length', () => {
    const { fates } = scheduleOf({ kind: 'turns', seed: 1, turns: 2_000 });
    for (const [service, arrows] of Object.entries(ARROWS)) {
      const struck = new Set(fates[service as keyof typeof ARROWS].map(({ step }) => step));
      expect([...struck].toSorted()).toEqual(arrows.flatMap((arrow) => [`before ${arrow}`, `after ${arrow}`]).toSorted());
    }
  });
});

describe('turns under a storm', () => {
  it('have one end each, no effect twice, and spend no more and no less than they used', { timeout: STORM_MS }, async () => {
    const report = await runStorm({ kind: 'turns', seed: 3, turns: TURNS });
    expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
    expect(report.accepted).toBe(TURNS);
    expect(report.blows.length).toBeGreaterThan(0);
    expect(report.effects).toBeGreaterThan(0);
  });
});

describe('executors that die between an effect and its record', () => {
  it('leave it done once, and the turn interrupted', { timeout: STORM_MS }, async () => {
    const report = await runStorm({ kind: 'killed-after-effect', seed: 1, turns: DEATHS });
    expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
    expect(report.effects).toBe(DEATHS);
    expect(report.blows.length).toBeGreaterThan(0);
    expect(report.outcomes['turn cancelled turn_cancelled']).toBe(report.blows.length);
  });
});
