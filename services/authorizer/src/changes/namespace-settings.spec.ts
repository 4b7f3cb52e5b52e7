import { type Address } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, admin, alice, authorizerWorld } from '../authorizer.fixture.ts';
import { chooseTools } from './choose-tools.ts';
import { forbidReading, managing, refusedWith, verdictOf } from './management.fixture.ts';
import { readNamespace } from '../turns/read-namespace.ts';

describe('the settings of a namespace', () => {
  it('are what nobody changed until somebody does', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    expect(await manage.getSettings()).toMatchObject({
      ok: true,
      value: { version: 0, settings: { liveRevocation: false, grantsPerHolderMax: 256 } },
    });
    expect(await manage.setSettings({ turnsRunningMax: 3 })).toMatchObject({
      ok: true,
      value: { version: 1, settings: { turnsRunningMax: 3 } },
    });
    expect(await manage.getSettings()).toMatchObject({
      ok: true,
      value: { version: 1, settings: { turnsRunningMax: 3, liveRevocation: false } },
    });
  });

  it('let open turns see a revocation at once where they say so, and only a turn opened under them', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const before = await world.opened();
    await managing(world).setSettings({ liveRevocation: true });
    const live = await world.opened();
    expect(await verdictOf(world, live.token)).toMatchObject({ status: 'allowed' });
    await world.revoke('g');
    const verdict = await verdictOf(world, live.token);
    expect(verdict).toMatchObject({ code: 'no_matching_grant' });
    expect(verdict.audit).toMatchObject([
      { metadata: { revocationChecks: [{ grantId: 'g', revision: 'log@3', revokedGrantIds: ['g'] }] } },
    ]);
    expect(await verdictOf(world, before.token)).toMatchObject({ status: 'allowed' });
  });

  it('of live revocation make a replica that hears nothing decide nothing', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    await managing(world).setSettings({ liveRevocation: true });
    const live = await world.opened();
    world.store.stop();
    world.fold.alive(false);
    expect(await verdictOf(world, live.token)).toMatchObject({ code: 'authority_unavailable' });
  });

  it('raise the number of live grants, which otherwise is 256', async () => {
    const world = await authorizerWorld({ deadlineMs: 2_000 });
    for (let count = 0; count < 257; count += 1) await world.issue(`g-${count}`);
    expect(await world.open()).toMatchObject({ ok: true, value: { status: 'unavailable', code: 'grant_limit_exceeded' } });
    await managing(world).setSettings({ grantsPerHolderMax: 100_000 });
    const opened = await world.opened();
    expect(opened).toMatchObject({ status: 'resolved', snapshot: { grantCount: 257 } });
    // Named are the first, however many there are.
    expect(opened.status === 'resolved' && opened.snapshot.grantIds).toHaveLength(256);
    expect(await verdictOf(world, opened.token)).toMatchObject({ status: 'allowed' });
  });
});

describe('the choice of tools of a namespace', () => {
  const choosing = (world: World, by: Address, commandId = 'c') =>
    chooseTools(world.ports, world.turns)(
      { commandId, by, update: { enable: ['repo'] }, whenUnset: ['files'] },
      world.delivery('authority.tools'),
    );
  it('is changed for whoever may, by the service that it asked, and is on record as the act of who asked', async () => {
    const world = await authorizerWorld();
    expect(await choosing(world, admin)).toEqual({ ok: true, value: { enabled: ['files', 'repo'], revision: 'log@1' } });
    expect(world.records).toMatchObject([
      { type: 'admin.changed', actor: admin, action: 'tools.update', resource: { namespace: 'sharedos.admin', path: ['tools'] } },
    ]);
    expect(await choosing(world, admin)).toMatchObject({ ok: true, value: { revision: 'log@1' } });
    expect(await choosing(world, admin, 'd')).toMatchObject({ ok: true, value: { revision: 'log@1' } });
  });
  it('is refused for anybody else', async () => {
    const world = await authorizerWorld();
    expect(await choosing(world, alice)).toMatchObject(refusedWith('not_an_administrator'));
    expect(world.records.at(-1)).toMatchObject({ type: 'admin.refused', actor: alice, action: 'authority.tools' });
    expect(world.fold.position).toBe(0);
  });
});

describe('what services are told of a namespace', () => {
  it('is what was acknowledged before they asked, with the agent they ask about', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    const ask = (agentId?: string) =>
      readNamespace(world.ports)(agentId === undefined ? {} : { agentId }, world.delivery('authority.namespace'));
    expect(await ask('bob')).toMatchObject({
      ok: true,
      value: { revision: 'log@0', policyVersion: 0, settings: { turnsRunningMax: 256 } },
    });
    await manage.setPolicy(forbidReading);
    await manage.setSettings({ turnsRunningMax: 3 });
    await manage.register(admin);
    const told = await ask('bob');
    expect(told).toMatchObject({
      ok: true,
      value: { revision: 'log@3', policyVersion: 1, settings: { turnsRunningMax: 3 }, agent: { status: 'proposed' } },
    });
    expect(await ask()).not.toHaveProperty('value.agent');
    world.store.stop();
    expect(await ask('bob')).toMatchObject(refusedWith('authority_unavailable', true));
  });
});
