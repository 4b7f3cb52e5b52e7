import { type PolicyDocument, timestampOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { admin, authorizerWorld, contextAt, toRead } from '../authorizer.fixture.ts';
import { forbidReading, managing, nothingForbidden, refusedWith, verdictOf } from './management.fixture.ts';

describe('the policy of a namespace', () => {
  it('holds every turn opened from then on, and no turn opened before', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const before = await world.opened();
    expect(await managing(world).setPolicy(forbidReading)).toMatchObject({
      ok: true,
      value: { policy: { document: forbidReading, version: 1 }, revision: 'log@2' },
    });
    expect(await verdictOf(world, before.token)).toMatchObject({ status: 'allowed' });
    const other = await authorizerWorld({ store: world.store, clock: world.clock });
    expect(await verdictOf(other, before.token)).toMatchObject({ status: 'allowed', revision: 'log@1' });
    expect(await world.opened()).toMatchObject({ hostPolicyVersion: '1' });
    const verdict = await verdictOf(world);
    expect(verdict).toMatchObject({ status: 'denied', code: 'host_policy_denied', revision: 'log@2' });
    expect(verdict.audit).toMatchObject([
      {
        type: 'authorization.checked',
        reason: 'host_policy_denied',
        grantId: 'g',
        metadata: { hostPolicyVersion: '1', rule: 'no-reading' },
      },
    ]);
    expect(world.records.at(-1)).toMatchObject({
      type: 'authority.resolved',
      metadata: { hostCeiling: 'installed', hostPolicy: 'loaded' },
    });
  });

  it('hides the tools it forbids, and is not asked where a turn may operate', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    await managing(world).setPolicy(forbidReading);
    const { token } = await world.opened();
    expect(await world.reach({ token, context: contextAt(timestampOf(world.clock.now())), ceilings: [toRead()] })).toMatchObject({
      ok: true,
      value: { discovered: [{ allowed: false, reasonCode: 'host_policy_denied' }], reach: { reach: [{ namespace: 'files' }] } },
    });
  });

  it('makes everything host_policy_unavailable when this release does not speak its language', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const document: PolicyDocument = { language: 'cedar/4', source: 'permit' };
    expect(await managing(world).setPolicy(document)).toMatchObject(refusedWith('policy_invalid'));
    await world.store.append({ category: 'policy', namespaceId: 'w1', id: 'policy' }, 0, [
      {
        eventId: '0190a3f0-7b1c-5d2e-8f00-0123456789ab',
        type: 'PolicySet',
        schemaVersion: 1,
        at: timestampOf(world.clock.now()),
        principal: admin,
        correlationId: 'c',
        data: { document: { ...document } },
      },
    ]);
    const verdict = await verdictOf(world);
    expect(verdict).toMatchObject({ code: 'host_policy_unavailable' });
    expect(verdict.audit).toMatchObject([{ metadata: { failClosed: true } }]);
    expect(world.records.at(-1)).toMatchObject({ type: 'authority.resolved', metadata: { hostPolicy: 'unavailable' } });
    // A root manages without a decision, so a policy that nobody can ask can be replaced.
    expect(await managing(world).setPolicy(nothingForbidden)).toMatchObject({ ok: true });
    expect(await verdictOf(world)).toMatchObject({ status: 'allowed' });
  });

  it('is refused over a version that is not there any more, with the one that is', async () => {
    const world = await authorizerWorld();
    const { setPolicy: set } = managing(world);
    await set(forbidReading);
    expect(await set(nothingForbidden, { expectedVersion: 0 })).toMatchObject({
      ok: false,
      error: { code: 'version_conflict', details: { version: 1 }, retryable: false },
    });
    expect(await set(nothingForbidden, { expectedVersion: 1 })).toMatchObject({ ok: true, value: { policy: { version: 2 } } });
  });

  it('is refused with two rules of one id, and says which', async () => {
    const world = await authorizerWorld();
    const rule = { id: 'no-reading', effect: 'forbid' } as const;
    const reply = await managing(world).setPolicy({ language: 'sharedos.rules/1', rules: [rule, rule] });
    expect(reply).toMatchObject(refusedWith('policy_invalid'));
    expect(reply).toMatchObject({ error: { message: expect.stringContaining('no-reading') } });
    expect(await world.store.barrier(10)).toEqual({ ok: true, value: 0 });
  });

  it('is one change however often its command is sent, with one record', async () => {
    const world = await authorizerWorld();
    const { setPolicy: set } = managing(world);
    const first = await set(forbidReading, { commandId: 'c' });
    expect(await set(forbidReading, { commandId: 'c' })).toEqual(first);
    expect(world.records.map(({ type, action }) => [type, action])).toEqual([
      ['admin.changed', 'policy.set'],
      ['admin.changed', 'policy.set'],
    ]);
    expect(new Set(world.records.map(({ id }) => id)).size).toBe(1);
    expect(world.records[0]).toMatchObject({
      actor: admin,
      operationId: 'c',
      resource: { namespace: 'sharedos.admin', path: ['policy'] },
      metadata: { revision: 'log@1' },
    });
  });
});
