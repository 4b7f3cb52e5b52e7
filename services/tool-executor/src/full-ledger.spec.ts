import type { QueuedDelivery } from '@sharedos/bus';
import { type AuditEvent, SCHEMA_HEADER, type TurnRefused, ok } from '@sharedos/contracts';
import { memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { isShort } from './ledger-room.ts';
import type { Ports } from './ports.ts';
import { takeTurn } from './take-turn.ts';
import { NOON, alice, scout } from './turn.fixture.ts';

const request = {
  version: '1',
  executionId: 'exec-1',
  agent: scout,
  message: { version: '1', id: 'm-1', sender: alice, receiver: scout, purpose: 'p1', payload: null, traceId: 'trace-1', createdAt: NOON },
  requestedAt: NOON,
};

describe('the room kept for turns that have begun', () => {
  it('is a twentieth of a bounded ledger, and none of an unbounded one', () => {
    expect([94, 95, 96].map((used) => isShort(used, 100))).toEqual([false, false, true]);
    expect(isShort(Number.MAX_SAFE_INTEGER, -1)).toBe(false);
  });
});

describe('a ledger without room', () => {
  it.each([
    ['starts no turn when it has none left', 0, false],
    ['starts no turn when what is left is kept for those that have begun', Infinity, true],
  ])('%s: the requester is told once, on record, and the request is gone', async (_, bytesMax, isShortNow) => {
    const log = memoryRecordLog();
    log.limit(bytesMax);
    const [told, audited, did]: [TurnRefused[], AuditEvent[], string[]] = [[], [], []];
    const ports = {
      ledger: memoryLedger({ log, readBackMs: 10 }),
      ledgerRoom: { isShort: isShortNow },
      bus: {
        publishStored: async (__: string, { body }: { body: TurnRefused }) => {
          told.push(body);
          return ok({ stream: 'TURN_EVENTS', sequence: 1, duplicate: false });
        },
      },
      audit: async (event: AuditEvent) => {
        audited.push(event);
        return ok(undefined);
      },
      clock: () => Date.parse(NOON),
      ids: countingIds('id'),
      instance: 'here',
      defaults: { maxSteps: 16, timeoutMs: 120_000, drainGraceMs: 0 },
      envelope: { manifest: { id: 'r', version: '1', protocolVersion: '1' } },
      rules: { toolNamespaces: ['files'], horizonMs: 3_600_000, skewMs: 30_000 },
    } as unknown as Ports;
    const delivery = {
      parsed: { verb: 'turn.request', namespaceId: 'w1', principal: alice, rest: [] },
      data: Buffer.from(JSON.stringify(request)),
      header: (name: string) => (name === SCHEMA_HEADER ? 'turn.request/1' : undefined),
      sequence: 3,
      ack: async () => void did.push('ack'),
      nak: async () => void did.push('nak'),
      term: async () => void did.push('term'),
    } as unknown as QueuedDelivery;

    await takeTurn(ports)(delivery);
    expect(told).toMatchObject([{ sequence: 3, executionId: 'exec-1', error: { code: 'ledger_full', retryable: true } }]);
    expect(audited).toMatchObject([{ type: 'turn.ended', outcome: 'denied', reason: 'ledger_full', operationId: 'exec-1' }]);
    expect(did).toEqual(['ack']);
  });
});
