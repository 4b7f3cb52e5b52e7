import { expect, it } from 'vitest';
import { runAuditStorm } from './storm.ts';

/** `npm run faults -- audit` writes ten thousand records and drops fifty connections. */
const SHORT = { events: 600, drops: 4, kills: 2 };

it('two projectors hold every record once, and what a third holds that is built from the streams', { timeout: 600_000 }, async () => {
  const report = await runAuditStorm(SHORT);
  expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
  expect(report.findings.length).toBeGreaterThan(0);
  // Records did come twice, and bits were flipped.
  expect(report.stored).toBeGreaterThan(SHORT.events);
  expect(report.flips).toBeGreaterThan(1_000);
});
