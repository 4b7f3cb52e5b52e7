import { describe, expect, it } from 'vitest';
import { admin, alice, authorizerWorld, carol } from '../authorizer.fixture.ts';
import { forbidReading, managing, nothingForbidden, refusedWith, theAgent } from './management.fixture.ts';

describe('managing a namespace', () => {
  it('is refused to anybody who is neither a root nor was granted it by one', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.grantAdmin('policy', ['write'], { from: alice });
    const forbidden = refusedWith('not_an_administrator');
    expect(await manage.setPolicy(forbidReading, { by: carol })).toMatchObject(forbidden);
    expect(await manage.getPolicy(carol)).toMatchObject(forbidden);
    expect(await manage.stop(theAgent, { by: carol })).toMatchObject(forbidden);
    expect(await manage.resume(theAgent, carol)).toMatchObject(forbidden);
    expect(await manage.setSettings({ liveRevocation: true }, carol)).toMatchObject(forbidden);
    expect(await manage.getSettings(carol)).toMatchObject(forbidden);
    expect(await manage.register(carol)).toMatchObject(forbidden);
    const refusals = world.records.filter(({ type }) => type === 'admin.refused');
    expect(refusals.map(({ action, actor }) => [action, actor])).toEqual(
      ['policy.set', 'policy.get', 'policy.stop', 'policy.resume', 'settings.set', 'settings.get', 'agent.register'].map((verb) => [
        verb,
        carol,
      ]),
    );
    expect(world.records.filter(({ type }) => type === 'authorization.checked')).toHaveLength(7);
  });

  it('is open by a grant of a root over that part and that action, and the decision is on record first', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.grantAdmin('policy', ['write', 'read']);
    expect(await manage.setPolicy(forbidReading, { by: carol })).toMatchObject({ ok: true });
    expect(world.records.slice(-2)).toMatchObject([
      {
        type: 'authorization.checked',
        outcome: 'allowed',
        actor: carol,
        authority: admin,
        resource: { namespace: 'sharedos.admin', path: ['policy'], owner: admin },
        action: 'write',
        purpose: 'sharedos.admin',
      },
      { type: 'admin.changed', actor: carol, action: 'policy.set' },
    ]);
    expect(await manage.getPolicy(carol)).toMatchObject({ ok: true, value: { policy: { version: 1 } } });
    expect(await manage.stop(theAgent, { by: carol })).toMatchObject(refusedWith('not_an_administrator'));
    expect(await manage.setSettings({ liveRevocation: true }, carol)).toMatchObject(refusedWith('not_an_administrator'));
  });

  it('changes nothing when its decision cannot be recorded', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.grantAdmin('policy', ['write']);
    world.auditWorks = false;
    expect(await manage.setPolicy(forbidReading, { by: carol })).toMatchObject(refusedWith('audit_unavailable', true));
    expect(world.fold.namespaces.policyAt('w1', Infinity).version).toBe(0);
  });

  it('ends with the grant, at once', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    const granted = await manage.grantAdmin('policy', ['write']);
    if (!granted.ok) throw new Error('not granted');
    await world.revoke(granted.value.grant.id, { by: admin });
    expect(await manage.setPolicy(forbidReading, { by: carol })).toMatchObject(refusedWith('not_an_administrator'));
  });

  it('is not opened by a grant of bounded use, and is held to the policy in force', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.grantAdmin('settings', ['write'], { constraints: { maxUses: 3 } });
    expect(await manage.setSettings({ liveRevocation: true }, carol)).toMatchObject(refusedWith('not_an_administrator'));
    expect(world.records.at(-2)).toMatchObject({ type: 'authorization.checked', reason: 'usage_store_unavailable' });
    await manage.grantAdmin('policy', ['write']);
    await manage.setPolicy({ language: 'sharedos.rules/1', rules: [{ id: 'f', effect: 'freeze', actor: carol }] });
    expect(await manage.setPolicy(nothingForbidden, { by: carol })).toMatchObject(refusedWith('not_an_administrator'));
    expect(world.records.at(-2)).toMatchObject({ type: 'authorization.checked', reason: 'host_policy_denied' });
  });

  it('is log_unavailable while the log does not answer', async () => {
    const world = await authorizerWorld();
    world.store.stop();
    expect(await managing(world).setPolicy(forbidReading)).toMatchObject(refusedWith('log_unavailable', true));
    expect(await managing(world).setPolicy(forbidReading, { by: carol })).toMatchObject(refusedWith('log_unavailable', true));
  });
});
