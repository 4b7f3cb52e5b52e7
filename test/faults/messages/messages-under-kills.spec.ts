import { describe, expect, it } from 'vitest';
import { STEPS, planOf } from './plan.ts';
import { runMessages } from './run-messages.ts';

/** A small run of its own seed; `npm run faults -- messages` sends ten thousand. */
const MESSAGES = 120;
const DEATHS = 4;
const RUN_MS = 600_000;

describe('a plan of messages and deaths', () => {
  it('follows from its seed alone', () => {
    const plan = (seed: number) => planOf({ seed, messages: 50, deaths: 10 });
    expect(plan(7)).toEqual(plan(7));
    expect(plan(8).messages.map(({ to }) => to)).not.toEqual(plan(7).messages.map(({ to }) => to));
  });
  it('has a router die at every step in a run of full length', () => {
    const { deaths } = planOf({ seed: 1, messages: 10_000, deaths: 100 });
    expect(new Set(deaths.map(({ step }) => step))).toEqual(new Set(STEPS));
  });
});

describe('messages through two routers that are killed', () => {
  it('are none of them lost, and none handed again to a recipient that acknowledged it', { timeout: RUN_MS }, async () => {
    const report = await runMessages({ seed: 5, messages: MESSAGES, deaths: DEATHS });
    expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
    expect([report.accepted, report.met.length > 0]).toEqual([MESSAGES, true]);
  });
});
