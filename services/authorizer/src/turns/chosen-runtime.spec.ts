import type { Address, RuntimeChoice } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { NOON, type World, admin, alice, authorizerWorld, bob, carol, contextAt } from '../authorizer.fixture.ts';
import { registerAgent, withdrawAgent } from '../changes/register-agent.ts';

const model: RuntimeChoice = { runtime: 'model', config: { guidance: 'Be brief.' } };
const remote: RuntimeChoice = { runtime: 'remote', config: {} };

const registering = (world: World) => {
  let sent = 0;
  const commandId = (): string => `c-${(sent += 1)}`;
  return {
    register: (by: Address, runtime?: RuntimeChoice) =>
      registerAgent(world.ports, world.turns)(
        {
          commandId: commandId(),
          terms: { agentId: bob.agentId, authority: alice, owner: carol, ...(runtime === undefined ? {} : { runtime }) },
        },
        world.delivery('agent.register', by),
      ),
    withdraw: (by: Address) =>
      withdrawAgent(world.ports, world.turns)({ commandId: commandId(), agentId: bob.agentId }, world.delivery('agent.withdraw', by)),
  };
};

describe('the runtime of an agent, when its turn is opened', () => {
  it('is what its registration says, once its authority and its owner have both agreed', async () => {
    const world = await authorizerWorld();
    const { register, withdraw } = registering(world);
    const said = async () => (await world.opened()).runtime;
    expect(await said()).toBeUndefined();
    for (const by of [admin, alice]) {
      await register(by, model);
      expect(await said()).toBeUndefined();
    }
    await register(carol, model);
    expect(await said()).toEqual(model);
    // Other terms stand from when they are stated, and run nothing until they are agreed to.
    await register(admin, remote);
    expect(await said()).toBeUndefined();
    for (const by of [alice, carol]) await register(by, remote);
    expect(await said()).toEqual(remote);
    await withdraw(carol);
    expect(await said()).toBeUndefined();
  });

  it('is nothing where the registration names none, or is another agent’s or namespace’s', async () => {
    const world = await authorizerWorld();
    const { register } = registering(world);
    for (const by of [admin, alice, carol]) await register(by);
    expect((await world.opened()).runtime).toBeUndefined();
    for (const by of [admin, alice, carol]) await register(by, model);
    expect((await world.opened()).runtime).toEqual(model);
    const others = [
      { namespaceId: 'other' },
      { actor: { kind: 'agent', agentId: 'Bob' } },
      { actor: { kind: 'human', userId: 'bob' } },
    ] as const;
    for (const more of others) expect((await world.opened({ context: contextAt(NOON, more) })).runtime).toBeUndefined();
  });
});
