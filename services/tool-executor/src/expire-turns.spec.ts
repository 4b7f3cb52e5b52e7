import { ok, unavailable } from '@sharedos/contracts';
import { memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { waitFor } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { cancelTurn } from './cancel-turn.ts';
import { keepExpiring } from './expire-turns.ts';
import type { Ports } from './ports.ts';
import { getTurn } from './read-turns.ts';
import { NOON, alice, claimedBy, key } from './turn.fixture.ts';

const HOUR_MS = 3_600_000;
const DEADLINE_MS = 20_000;
const cancelled = {
  type: 'ended',
  at: NOON,
  by: 'owner',
  result: {
    version: '1',
    status: 'cancelled',
    executionId: 'exec-1',
    traceId: 'trace-1',
    events: [],
    startedAt: NOON,
    completedAt: NOON,
  },
  audit: [],
} as never;

const world = async () => {
  const ledger = memoryLedger({ log: memoryRecordLog(), readBackMs: 10 });
  const claim = await ledger.claim(key, claimedBy('executor'));
  if (!claim.ok) throw new Error('the turn was not claimed');
  return {
    ledger,
    end: () => claim.value.append(cancelled),
    types: async () => {
      const read = await ledger.read(key);
      return read.ok ? read.value?.records.map(({ type }) => type) : undefined;
    },
  };
};
const options = (now: number) => ({ clock: () => now, horizonMs: HOUR_MS, skewMs: 0, everyMs: 10, onPass: () => undefined });

describe('turns whose time to be asked for again is over', () => {
  it('expire, and are neither found, nor cancelled, nor taken for others', async () => {
    const { ledger, end, types } = await world();
    await end();
    const expiring = keepExpiring(ledger, options(Date.now() + 2 * HOUR_MS));
    await waitFor('the turn to expire', async () => (await types())?.includes('expired') === true, DEADLINE_MS);
    await expiring.stop();
    const ports = { ledger, bus: {} } as unknown as Ports;
    const from = { namespaceId: 'w1', principal: alice, rest: [], signal: new AbortController().signal };
    expect(await getTurn(ports)({ executionId: 'exec-1' }, { ...from, verb: 'turn.get' })).toMatchObject({
      ok: false,
      error: { code: 'replay_expired', retryable: false },
    });
    expect(await cancelTurn(ports)({ executionId: 'exec-1' }, { ...from, verb: 'turn.cancel' })).toEqual(ok({ outcome: 'ended' }));
  });

  it('are left alone before, and while they run', async () => {
    const { ledger, end, types } = await world();
    let passes = 0;
    const counting = { expire: async (before: number, most: number) => ((passes += 1), ledger.expire(before, most)) };
    const early = keepExpiring(counting, options(Date.now()));
    const late = keepExpiring(counting, options(Date.now() + 2 * HOUR_MS));
    await waitFor('some passes', () => passes >= 6, DEADLINE_MS);
    await late.stop();
    await end();
    const before = passes;
    await waitFor('some more', () => passes >= before + 3, DEADLINE_MS);
    await early.stop();
    expect(await types()).toEqual(['claimed', 'ended']);
  });

  it('are looked for again after the ledger did not answer', async () => {
    const { ledger, end, types } = await world();
    await end();
    const said: unknown[] = [];
    let isAway = true;
    const away = { expire: async (before: number, most: number) => (isAway ? unavailable('away') : ledger.expire(before, most)) };
    const expiring = keepExpiring(away, { ...options(Date.now() + 2 * HOUR_MS), onPass: (pass) => void said.push(pass) });
    await waitFor('word of it', () => said.length > 0, DEADLINE_MS);
    isAway = false;
    await waitFor('the turn to expire', async () => (await types())?.includes('expired') === true, DEADLINE_MS);
    await expiring.stop();
    expect(said.at(0)).toEqual({ expired: 0, trouble: 'away' });
    expect(said).toContainEqual({ expired: 1 });
  });
});
