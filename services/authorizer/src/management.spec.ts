import {
  type Address,
  type CapabilityConstraints,
  type PolicyDocument,
  type SettingsPatch,
  type StopTarget,
  timestampOf,
} from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, admin, alice, authorizerWorld, bob, carol, contextAt, toRead } from './authorizer.fixture.ts';
import { chooseTools } from './choose-tools.ts';
import { issueGrant } from './issue-grant.ts';
import { readNamespace } from './read-namespace.ts';
import { getAgent, registerAgent, withdrawAgent } from './register-agent.ts';
import { getPolicy, resumeStopped, setPolicy } from './set-policy.ts';
import { getSettings, setSettings } from './set-settings.ts';
import { stopTarget } from './stop-target.ts';

const forbidReading: PolicyDocument = {
  language: 'sharedos.rules/1',
  rules: [{ id: 'no-reading', effect: 'forbid', namespaces: ['files'], actions: ['read'] }],
};
const nothingForbidden: PolicyDocument = { language: 'sharedos.rules/1', rules: [] };
const theAgent: StopTarget = { kind: 'agent', agent: bob };
const everybody: StopTarget = { kind: 'namespace' };
const refusedWith = (code: string, retryable = false) => ({ ok: false, error: { code, retryable } });

/** The commands of one replica, as whoever sends them sees it. */
const managing = (world: World) => {
  const { ports, turns } = world;
  let sent = 0;
  const next = (): string => {
    sent += 1;
    return `m-${sent}`;
  };
  return {
    setPolicy: (
      document: PolicyDocument,
      { by = admin as Address, commandId = next(), expectedVersion = undefined as number | undefined } = {},
    ) =>
      setPolicy(ports, turns)(
        { commandId, document, ...(expectedVersion === undefined ? {} : { expectedVersion }) },
        world.delivery('policy.set', by),
      ),
    getPolicy: (by: Address = admin) => getPolicy(ports, turns)({}, world.delivery('policy.get', by)),
    stop: (target: StopTarget, { by = admin as Address, commandId = next() } = {}) =>
      stopTarget(ports, turns)({ commandId, target, reason: 'it deletes files' }, world.delivery('policy.stop', by)),
    resume: (target: StopTarget, by: Address = admin) =>
      resumeStopped(ports, turns)({ commandId: next(), target }, world.delivery('policy.resume', by)),
    setSettings: (settings: SettingsPatch, by: Address = admin) =>
      setSettings(ports, turns)({ commandId: next(), settings }, world.delivery('settings.set', by)),
    getSettings: (by: Address = admin) => getSettings(ports, turns)({}, world.delivery('settings.get', by)),
    register: (by: Address, terms: { authority?: Address; owner?: Address } = {}) =>
      registerAgent(ports, turns)(
        { commandId: next(), terms: { agentId: 'bob', authority: alice, owner: carol, ...terms } },
        world.delivery('agent.register', by),
      ),
    withdraw: (by: Address) => withdrawAgent(ports, turns)({ commandId: next(), agentId: 'bob' }, world.delivery('agent.withdraw', by)),
    getAgent: (by: Address) => getAgent(ports, turns)({ agentId: 'bob' }, world.delivery('agent.get', by)),
    /** Grants a part of the management plane, from whoever says so. */
    grantAdmin: (
      area: string,
      actions: string[],
      { from = admin as Address, to = carol as Address, constraints = {} as CapabilityConstraints } = {},
    ) =>
      issueGrant(ports)(
        {
          commandId: next(),
          grant: {
            id: `admin-${next()}`,
            subject: to,
            capabilities: [{ resource: { namespace: 'sharedos.admin', path: [area] }, actions, scope: 'exact' }],
            constraints,
          },
        },
        world.delivery('grant.issue', from),
      ),
  };
};

const reading = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
const verdictOf = async (world: World, token?: string) =>
  world.verdict(token ?? (await world.opened()).token, reading, contextAt(timestampOf(world.clock.now())));

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
    const [rule] = forbidReading.rules as [never];
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

describe('the registration of an agent', () => {
  it('is active once its authority and its owner agreed', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    expect(await manage.register(admin)).toMatchObject({ ok: true, value: { agent: { status: 'proposed', consents: [] } } });
    expect(await manage.register(alice)).toMatchObject({ ok: true, value: { agent: { status: 'proposed', consents: [alice] } } });
    expect(await manage.register(carol)).toMatchObject({ ok: true, value: { agent: { status: 'active' }, revision: 'log@3' } });
    expect(await manage.register(alice, { owner: alice })).toMatchObject(refusedWith('not_an_administrator'));
    expect(world.records.at(-1)).toMatchObject({ type: 'admin.refused', action: 'agent.register', metadata: { about: 'bob' } });
  });

  it('is shown to those it concerns and to whoever manages agents, and to others is not there', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.register(admin);
    const stranger: Address = { kind: 'human', userId: 'stranger' };
    for (const by of [admin, alice, carol, bob])
      expect(await manage.getAgent(by)).toMatchObject({ ok: true, value: { agent: { version: 1 } } });
    expect(await manage.getAgent(stranger)).toMatchObject(refusedWith('agent_not_found'));
    expect(await manage.withdraw(stranger)).toMatchObject(refusedWith('agent_not_found'));
  });

  it('is withdrawn by its owner, and by nobody whom it does not concern', async () => {
    const world = await authorizerWorld();
    const manage = managing(world);
    await manage.register(admin);
    expect(await manage.withdraw(bob)).toMatchObject(refusedWith('agent_not_found'));
    expect(await manage.withdraw(carol)).toMatchObject({ ok: true, value: { agent: { status: 'withdrawn' } } });
    expect(world.records.at(-1)).toMatchObject({ type: 'admin.changed', action: 'agent.withdraw', actor: carol });
  });
});
