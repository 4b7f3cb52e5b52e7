import { type Bus, PROVISIONER } from '@sharedos/bus';
import { LedgerRecordMessage, UseClaimMessage, namespaceSubject } from '@sharedos/contracts';
import { type ProvisionedNats, startProvisionedNats } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ledgerContract } from './contract.ts';
import { jetStreamLedger, jetStreamRecordLog } from './jetstream.ts';
import { operationSubject } from './ledger-names.ts';

let nats: ProvisionedNats;
let provisioner: Bus;
let executor: Bus;
let authorizer: Bus;
const connections: Bus[] = [];

beforeAll(async () => {
  nats = await startProvisionedNats();
  provisioner = await nats.connect(PROVISIONER);
  executor = await nats.connect('tool-executor');
  authorizer = await nats.connect('authorizer');
  connections.push(provisioner, executor, authorizer);
});
afterAll(async () => {
  await Promise.all(connections.map((bus) => bus.close()));
  await nats.end();
});

/** Leaves room for so many bytes more. Never for fewer than there are: then the server deletes the oldest, claims first. */
const leaveRoom = async (bytes: number): Promise<void> => {
  const { streams } = await provisioner.nats.jetstreamManager();
  const { config, state } = await streams.info('LEDGER');
  await streams.update('LEDGER', { ...config, max_bytes: state.bytes + bytes });
};

ledgerContract('jetstream', async () => ({
  log: async () => {
    const bus = await nats.connect('tool-executor');
    connections.push(bus);
    return jetStreamRecordLog(bus, { ackTimeoutMs: 800, usesTimeoutMs: 1_500 });
  },
  restart: async () => {
    await nats.server.kill();
    await nats.server.restart();
    await vi.waitUntil(() => connections.every((bus) => bus.connected), { timeout: 15_000 });
  },
  stall: async () => {
    nats.server.pause();
    // A thread on another core may answer a moment longer.
    await vi.waitUntil(async () => !(await provisioner.flush(100)), { timeout: 5_000 });
  },
  resume: async () => nats.server.resume(),
  fill: (isFull) => leaveRoom(isFull ? 1 : 1024 ** 3),
  close: async () => undefined,
}));

describe('the ledger on its stream', () => {
  const at = '2026-01-01T12:00:00.000Z';
  const key = { namespaceId: 'odd', kind: 'execution', requester: { kind: 'human', userId: 'alice' }, id: 'unreadable' } as const;

  it('says that an operation cannot be read, not that it is shorter, when a record of it is no record', async () => {
    await executor.publishStored(
      operationSubject(key),
      { message: LedgerRecordMessage, body: { type: 'admitted', at, callId: 'call', audit: [], more: true } as never },
      { timeoutMs: 2_000 },
    );
    expect(await jetStreamLedger(executor).read(key)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });

  it('lets the authorizer, which rebuilds the counters, read the uses but write none', async () => {
    const use = { at, grantId: 'grant', ordinal: 1, operation: 'operation' };
    expect(await jetStreamLedger(executor).claimUse('rights', use)).toMatchObject({ ok: true });
    const uses = await jetStreamLedger(authorizer).uses();
    expect(uses.ok && uses.value).toContainEqual({ namespaceId: 'rights', use });
    expect(await jetStreamLedger(authorizer, { readBackMs: 100 }).claimUse('rights', { ...use, ordinal: 2 })).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
  });

  it('gives no uses at all when one of them cannot be read, or is not the one its subject names', async () => {
    const ledger = jetStreamLedger(executor);
    const subject = namespaceSubject('ledger', 'odd', 'use', 'grant', '1');
    await executor.publishStored(
      subject,
      { message: UseClaimMessage, body: { at, grantId: 'grant', ordinal: 2, operation: 'operation' } },
      { timeoutMs: 2_000 },
    );
    expect(await ledger.uses()).toMatchObject({
      ok: false,
      error: { kind: 'unavailable', reason: expect.stringContaining('its subject') },
    });
  });
});
