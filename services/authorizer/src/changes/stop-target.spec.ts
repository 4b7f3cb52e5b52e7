import { describe, expect, it } from 'vitest';
import { admin, authorizerWorld, carol } from '../authorizer.fixture.ts';
import { everybody, managing, nothingForbidden, refusedWith, theAgent, verdictOf } from './management.fixture.ts';
import { stopTarget } from './stop-target.ts';

describe('stopping an agent', () => {
  it('forbids it everything, and revokes the live grants it holds from anybody', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await world.issue('g');
    await world.issue('h', {}, { by: carol });
    await world.issue('ended');
    await world.revoke('ended');
    await world.issue('of-another', {}, { to: carol });
    expect(await manage.stop(theAgent)).toMatchObject({
      ok: true,
      value: { policy: { stops: [{ target: theAgent, reason: 'it deletes files', by: admin }] }, revokedNow: 2, complete: true },
    });
    expect(await verdictOf(world)).toMatchObject({ status: 'denied', code: 'no_matching_grant' });
    const revocations = world.records.filter(
      ({ action, actor }) => action === 'grant.revoke' && actor.kind === 'human' && actor.userId === 'admin',
    );
    expect(new Set(revocations.map(({ grantId }) => grantId))).toEqual(new Set(['g', 'h']));
    expect(new Set(revocations.map(({ id }) => id)).size).toBe(2);
    await world.issue('new');
    expect(await verdictOf(world)).toMatchObject({ code: 'host_policy_denied' });
  });

  it('goes on where it ended when it is sent again, and revokes nothing twice', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await world.issue('g');
    await manage.stop(theAgent, { commandId: 'c' });
    await world.issue('later');
    expect(await manage.stop(theAgent, { commandId: 'c' })).toMatchObject({ ok: true, value: { revokedNow: 1, complete: true } });
    expect(await manage.stop(theAgent)).toMatchObject({ ok: true, value: { revokedNow: 0, policy: { version: 1 } } });
  });

  it('is answered in time however many grants it holds, and says when there are more', async () => {
    const world = await authorizerWorld();
    for (const id of ['a', 'b', 'c']) await world.issue(id);
    const stop = () =>
      stopTarget(world.ports, world.turns, 2)({ commandId: 'c', target: theAgent, reason: 'r' }, world.delivery('policy.stop', admin));
    expect(await stop()).toMatchObject({ ok: true, value: { revokedNow: 2, complete: false, revision: 'log@6' } });
    expect(await stop()).toMatchObject({ ok: true, value: { revokedNow: 1, complete: true, revision: 'log@7' } });
  });

  it('ends by resuming it, and no grant comes back', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await world.issue('g');
    await manage.stop(theAgent);
    expect(await manage.resume(theAgent)).toMatchObject({ ok: true, value: { policy: { stops: [], version: 2 } } });
    expect(await verdictOf(world)).toMatchObject({ code: 'no_matching_grant' });
    await world.issue('new');
    expect(await verdictOf(world)).toMatchObject({ status: 'allowed' });
    expect(await manage.resume(theAgent)).toMatchObject(refusedWith('not_stopped'));
  });

  it('is not ended by setting the policy', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.stop(theAgent);
    await manage.setPolicy(nothingForbidden);
    await world.issue('g');
    expect(await verdictOf(world)).toMatchObject({ code: 'host_policy_denied' });
  });
});

describe('stopping a namespace', () => {
  it('forbids everybody everything, revokes nothing, and leaves its operators their way back', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await world.issue('g');
    await manage.grantAdmin('policy', ['stop']);
    expect(await manage.stop(everybody, { by: carol })).toMatchObject({ ok: true, value: { revokedNow: 0, complete: true } });
    expect(await verdictOf(world)).toMatchObject({ code: 'host_policy_denied' });
    expect(await manage.resume(everybody, carol)).toMatchObject({ ok: true });
    expect(await verdictOf(world)).toMatchObject({ status: 'allowed' });
  });
});
