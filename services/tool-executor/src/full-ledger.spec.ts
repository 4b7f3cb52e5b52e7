import type { QueuedDelivery } from '@sharedos/bus';
import { type AuditEvent, SCHEMA_HEADER, type TurnRefused, ok } from '@sharedos/contracts';
import { memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
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

describe('a ledger without room', () => {
  it('starts no turn: the requester is told once, it is on record, and the request is not delivered again', async () => {
    const log = memoryRecordLog();
    log.limit(0);
    const [told, audited, did]: [TurnRefused[], AuditEvent[], string[]] = [[], [], []];
    const ports = {
      ledger: memoryLedger({ log, readBackMs: 10 }),
      bus: {
        publishStored: async (_: string, { body }: { body: TurnRefused }) => {
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
