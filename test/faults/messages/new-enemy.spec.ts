import { describe, expect, it } from 'vitest';
import { playNewEnemy } from './new-enemy.ts';

/** `npm run faults -- messages-new-enemy` plays a thousand. */
const ROUNDS = 10;
const RUN_MS = 600_000;

describe('the new enemy by message', () => {
  it('finds nothing that was revoked before the message was sent, on three replicas of each service', { timeout: RUN_MS }, async () => {
    const report = await playNewEnemy({ rounds: ROUNDS, replicas: 3 });
    expect(report.findings.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
    expect(report.rounds).toBe(ROUNDS);
  });
});
