import { type Bus, type BrokerUser, PROVISIONER, brokerAccounts, connectBus, provision, renderNatsConfig } from '@sharedos/bus';
import { LedgerRecordMessage, UseClaimMessage, namespaceSubject, ok } from '@sharedos/contracts';
import { OWN_PASSWORD, type OwnNats, startOwnNats } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ledgerContract } from './contract.ts';
import { jetStreamLedger, jetStreamRecordLog } from './jetstream.ts';
import { operationSubject } from './ledger-names.ts';

/** A user of the broker that services are not: it may take records out of the ledger. */
const MAINTAINER: BrokerUser = {
  name: 'maintainer',
  password: OWN_PASSWORD,
  rights: { publish: ['$JS.API.STREAM.PURGE.LEDGER'], subscribe: ['_INBOX_SERVICE.maintainer.>'] },
};

let nats: OwnNats;
let maintainer: Bus;
let provisioner: Bus;
let executor: Bus;
let authorizer: Bus;
const connections: Bus[] = [];
let published = Infinity;

beforeAll(async () => {
  const { core, edge } = brokerAccounts([], () => OWN_PASSWORD);
  nats = await startOwnNats((listener) => renderNatsConfig(listener, { core: [...core, MAINTAINER], edge }));
  expect(await provision({ servers: nats.url, user: PROVISIONER, pass: OWN_PASSWORD })).toEqual({ ok: true, value: undefined });
  provisioner = await connectAs(PROVISIONER);
  executor = await connectAs('tool-executor');
  authorizer = await connectAs('authorizer');
  maintainer = await connectAs(MAINTAINER.name);
});
afterAll(async () => {
  await Promise.all(connections.map((bus) => bus.close()));
  await nats.end();
});

const connectAs = async (user: string): Promise<Bus> => {
  const inboxPrefix = `_INBOX_SERVICE.${user}`;
  const bus = await connectBus({ servers: nats.url, user, pass: OWN_PASSWORD, name: `test ${user}`, inboxPrefix });
  connections.push(bus);
  return bus;
};

/** Leaves room for so many bytes more. Never for fewer than there are: then the server deletes the oldest, claims first. */
const leaveRoom = async (bytes: number): Promise<void> => {
  const { streams } = await provisioner.nats.jetstreamManager();
  const { config, state } = await streams.info('LEDGER');
  await streams.update('LEDGER', { ...config, max_bytes: state.bytes + bytes });
};

ledgerContract('jetstream', async () => ({
  log: async () => {
    const publishedUpTo = async () => ok(published);
    const log = jetStreamRecordLog(await connectAs('tool-executor'), { ackTimeoutMs: 800, usesTimeoutMs: 1_500, publishedUpTo });
    return { ...log, forget: jetStreamRecordLog(maintainer).forget };
  },
  holdBack: (sequenceMax = Infinity) => {
    published = sequenceMax;
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

  it('lets no service take anything out of it', async () => {
    const service = jetStreamRecordLog(executor);
    expect(await service.forget(operationSubject(key), 0, 300)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
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
