import type { Address } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { admin, alice, authorizerWorld, bob, carol } from '../authorizer.fixture.ts';
import { managing, refusedWith } from './management.fixture.ts';

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
