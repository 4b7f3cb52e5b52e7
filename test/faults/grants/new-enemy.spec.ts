import { describe, expect, it } from 'vitest';
import type { Finding } from '../finding.ts';
import { type GrantsReport, runGrants } from './run-grants.ts';

/** `npm run faults -- grants` plays ten thousand. */
const ROUNDS = 96;
const RUN_MS = 300_000;
const STORES = ['jetstream', 'eventstoredb'] as const;

const contradicted = ({ findings }: GrantsReport): readonly Finding[] => findings.filter(({ contradictions }) => contradictions.length > 0);

describe.each(STORES)('a revocation that was acknowledged, with the log on %s', (store) => {
  it('is seen by every turn opened after it, by an authorizer that lags, has just started or reconnects', { timeout: RUN_MS }, async () => {
    const report = await runGrants({ scene: 'grants', store, seed: 3, rounds: ROUNDS });
    expect(contradicted(report)).toEqual([]);
    expect(report.opened).toBeGreaterThanOrEqual(2 * ROUNDS);
    for (const { opened } of Object.values(report.answers)) expect(opened).toBeGreaterThan(0);
  });
});

describe('without the barrier', () => {
  it('turns are opened that still use what was revoked, and the run says which', { timeout: RUN_MS }, async () => {
    const report = await runGrants({ scene: 'grants', store: 'jetstream', seed: 3, rounds: ROUNDS / 2, without: 'barrier' });
    expect(contradicted(report).map(({ rule }) => rule)).toEqual([
      'no turn uses a grant whose revocation was acknowledged before it was opened',
      'every turn is opened at or after all that was acknowledged before',
    ]);
  });
});
