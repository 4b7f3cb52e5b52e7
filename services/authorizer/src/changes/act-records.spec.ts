import { type AuditEvent, ok, unavailable } from '@sharedos/contracts';
import { describe, expect, it, vi } from 'vitest';
import { ActRecords } from './act-records.ts';
import { admin, alice, authorizerWorld } from '../authorizer.fixture.ts';
import { recordRecentActs } from './record-recent-acts.ts';
import { setSettings } from './set-settings.ts';

const record = (id: string): AuditEvent => ({
  version: '1',
  id,
  type: 'admin.changed',
  outcome: 'succeeded',
  at: '2026-01-01T12:00:00.000Z',
  traceId: 't',
  namespaceId: 'w1',
  actor: alice,
  authority: alice,
  owner: alice,
  purpose: 'sharedos.admin',
});

/** An audit stream that can be away. */
const stream = () => {
  const world = {
    isAway: false,
    stored: [] as string[],
    audit: async ({ id }: AuditEvent) => {
      if (world.isAway) return unavailable('away');
      world.stored.push(id);
      return ok(undefined);
    },
  };
  return world;
};

describe('the record of an act', () => {
  it('that cannot be written is written as soon as it can be', async () => {
    const world = stream();
    const records = new ActRecords(world.audit);
    world.isAway = true;
    await records.write(record('a'));
    await records.write(record('b'));
    expect([records.waiting, world.stored]).toEqual([2, []]);
    world.isAway = false;
    await vi.waitUntil(() => records.waiting === 0, { timeout: 20_000 });
    expect(world.stored).toEqual(['a', 'b']);
    await records.close();
  });

  it('is left to the log when the process ends before it could be written', async () => {
    const world = stream();
    const records = new ActRecords(world.audit);
    world.isAway = true;
    await records.write(record('a'));
    await records.close();
    expect([records.waiting, world.stored]).toEqual([1, []]);
  });

  it('comes out of the log the same, for all that was changed lately and nothing else', async () => {
    const world = await authorizerWorld();
    await world.issue('old');
    world.clock.advance(60_000);
    const since = world.clock.now();
    await world.issue('parent', { delegationDepth: 1 });
    await world.derive('parent', 'child');
    await world.revoke('child', { by: { kind: 'agent', agentId: 'bob' } });
    await setSettings(world.ports, world.turns)(
      { commandId: 'c', settings: { liveRevocation: true } },
      world.delivery('settings.set', admin),
    );
    const recorded = world.records.filter(({ type }) => type === 'admin.changed').slice(1);
    const again: AuditEvent[] = [];
    const records = { write: async (event: AuditEvent) => void again.push(event) };
    const { written } = recordRecentActs({ store: world.store, records }, { since, from: 0, upTo: world.fold.position });
    expect(await written).toBe(4);
    expect(again).toEqual(recorded);
    expect(again.map(({ action }) => action)).toEqual(['grant.issue', 'grant.derive', 'grant.revoke', 'settings.set']);
    await world.close();
  });

  it('is not written again when nothing happened, nor above where the process began', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    await world.issue('h');
    const again: AuditEvent[] = [];
    const records = { write: async (event: AuditEvent) => void again.push(event) };
    expect(await recordRecentActs({ store: world.store, records }, { since: 0, from: 2, upTo: 2 }).written).toBe(0);
    expect(await recordRecentActs({ store: world.store, records }, { since: 0, from: 0, upTo: 1 }).written).toBe(1);
    expect(again.map(({ grantId }) => grantId)).toEqual(['g']);
    await world.close();
  });

  it('must be writable before more is changed than can be remembered', async () => {
    const world = await authorizerWorld();
    const full = { ...world.ports, records: Object.assign(new ActRecords(world.ports.audit), {}) };
    Object.defineProperty(full.records, 'isFull', { value: true });
    expect(
      await setSettings(full, world.turns)({ commandId: 'c', settings: { liveRevocation: true } }, world.delivery('settings.set', admin)),
    ).toMatchObject({ ok: false, error: { code: 'audit_unavailable', retryable: true } });
    expect(world.fold.position).toBe(0);
  });
});
