import { SCHEMA_HEADER, ok, principalSubject } from '@sharedos/contracts';
import { type Ledger, memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { cancelTurn } from './cancel-turn.ts';
import type { Ports } from './ports.ts';
import { NOON, alice, claimedBy, key, scout } from './turn.fixture.ts';

const request = {
  version: '1',
  executionId: 'exec-1',
  agent: scout,
  message: { version: '1', id: 'm-1', sender: alice, receiver: scout, purpose: 'p1', payload: null, traceId: 'trace-1', createdAt: NOON },
  requestedAt: NOON,
};
/** The request as it waits in the queue. */
const queued = {
  message: {
    subject: principalSubject('turn.request', 'w1', alice),
    seq: 3,
    time: NOON,
    data: Buffer.from(JSON.stringify(request)).toString('base64'),
    hdrs: Buffer.from(`NATS/1.0\r\n${SCHEMA_HEADER}: turn.request/1\r\n\r\n`).toString('base64'),
  },
};

describe('cancelling a turn that is taken at this very moment', () => {
  it('cancels nothing, and says to ask again', async () => {
    const log = memoryRecordLog();
    const ledger = memoryLedger({ log, readBackMs: 10 });
    // An executor claims between the look into the ledger and the claim that would cancel.
    const raced: Ledger = {
      ...ledger,
      claim: async (...asked) => {
        await ledger.claim(key, claimedBy('executor'));
        return ledger.claim(...asked);
      },
    };
    const ports = {
      ledger: raced,
      bus: { connected: true, replies: { send: async () => ok({ json: () => queued }) } },
      clock: () => Date.parse(NOON),
      ids: countingIds('id'),
      instance: 'canceller',
      defaults: { maxSteps: 16, timeoutMs: 120_000, drainGraceMs: 0 },
      envelope: { manifest: { id: 'r', version: '1', protocolVersion: '1' } },
      rules: { toolNamespaces: ['files'], horizonMs: 3_600_000, skewMs: 30_000 },
    } as unknown as Ports;
    const delivery = { verb: 'turn.cancel', namespaceId: 'w1', principal: alice, rest: [], signal: new AbortController().signal } as const;

    expect(await cancelTurn(ports)({ executionId: 'exec-1' }, delivery)).toMatchObject({
      ok: false,
      error: { code: 'turn_taken', retryable: true },
    });
    const history = await ledger.read(key);
    expect(history.ok && history.value?.records).toMatchObject([{ type: 'claimed', ownerId: 'executor' }]);
  });
});
