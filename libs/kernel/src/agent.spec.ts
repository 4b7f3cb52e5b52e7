import { type Address, AgentEvent, AgentState, type AgentTerms } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type AgentCommand, agent } from './agent.ts';
import { Defect } from './decider.ts';
import { NOW, alice, at, bob, carol, dave } from './testing/base-world.ts';
import { given } from './testing/given.ts';

const TEN = at('10:00:00.000');
const admin: Address = { kind: 'human', userId: 'admin' };
const terms: AgentTerms = { agentId: 'bob', authority: alice, owner: carol, runtime: { runtime: 'scripted', config: {} } };

const register = (by: Address, changes: Partial<AgentTerms> = {}, expectedVersion?: number): AgentCommand => ({
  type: 'RegisterAgent',
  terms: { ...terms, ...changes },
  by,
  managesAgents: by === admin,
  at: NOW,
  expectedVersion,
});
const withdraw = (by: Address, reason?: string): AgentCommand => ({
  type: 'WithdrawAgent',
  by,
  managesAgents: by === admin,
  at: NOW,
  reason,
});

const registered = (consents: readonly Address[] = [], changes: Partial<AgentTerms> = {}): AgentEvent => ({
  type: 'AgentRegistered',
  terms: { ...terms, ...changes },
  consents: [...consents],
  registeredAt: TEN,
});
const consented = (by: Address): AgentEvent => ({ type: 'AgentConsented', by, consentedAt: TEN });
const withdrawn = (by: Address): AgentEvent => ({ type: 'AgentWithdrawn', by, withdrawnAt: TEN });
const stateAfter = (...events: readonly AgentEvent[]) => events.reduce((state, event) => agent.evolve(state, event), agent.initial);

describe('registering an agent', () => {
  it('is for whoever manages agents', () => given(agent, []).when(register(admin)).thenEvents(registered()));
  it.each([
    ['its authority', alice],
    ['its owner', carol],
    ['the agent itself', bob],
    ['a stranger', dave],
  ])('is refused to anybody else: %s', (_, by) => given(agent, []).when(register(by)).thenRefused({ code: 'not_an_administrator' }));
  it('is refused to a party under other terms than those that stand', () => {
    given(agent, [registered()])
      .when(register(alice, { owner: alice }))
      .thenRefused({ code: 'not_an_administrator' });
    given(agent, [registered()])
      .when(register(alice, { runtime: { runtime: 'model', config: {} } }))
      .thenRefused({ code: 'not_an_administrator' });
  });
  it('agrees for nobody but the caller', () =>
    given(agent, [])
      .when({ ...register(alice), managesAgents: true })
      .thenEvents(registered([alice])));
  it('under other terms asks for every consent anew', () =>
    given(agent, [registered([alice]), consented(carol)])
      .when(register(admin, { owner: dave }))
      .thenEvents(registered([], { owner: dave })));
  it('changes nothing the second time', () => given(agent, [registered()]).when(register(admin)).thenNothing());
  it('is refused for another version than stands', () =>
    given(agent, [registered()])
      .when(register(admin, { owner: dave }, 0))
      .thenRefused({ code: 'version_conflict', found: 1 }));
});

describe('agreeing to a registration', () => {
  it('is for its authority and its owner, by asking for the same terms', () => {
    given(agent, [registered()]).when(register(alice)).thenEvents(consented(alice));
    given(agent, [registered([alice])])
      .when(register(carol))
      .thenEvents(consented(carol));
  });
  it('is refused to anybody else, the agent too', () => {
    given(agent, [registered()]).when(register(bob)).thenRefused({ code: 'not_an_administrator' });
    given(agent, [registered()]).when(register(dave)).thenRefused({ code: 'not_an_administrator' });
  });
  it('changes nothing the second time', () =>
    given(agent, [registered([alice])])
      .when(register(alice))
      .thenNothing());
  it('is refused once it was withdrawn', () =>
    given(agent, [registered([alice]), withdrawn(alice)])
      .when(register(carol))
      .thenRefused({ code: 'not_an_administrator' }));
});

describe('withdrawing a registration', () => {
  it.each([
    ['its authority', alice],
    ['its owner', carol],
    ['whoever manages agents', admin],
  ])('is for %s', (_, by) => given(agent, [registered()]).when(withdraw(by)).thenEvents(withdrawn(by)));
  it('is not found for anybody else', () => {
    given(agent, [registered()]).when(withdraw(bob)).thenRefused({ code: 'agent_not_found' });
    given(agent, []).when(withdraw(admin)).thenRefused({ code: 'agent_not_found' });
  });
  it('changes nothing the second time', () =>
    given(agent, [registered(), withdrawn(alice)])
      .when(withdraw(admin))
      .thenNothing());
  it('cannot have happened before it was registered', () => expect(() => stateAfter(withdrawn(alice))).toThrow(Defect));
});

describe('a registered agent', () => {
  it('is active once both agreed, and not before', () => {
    expect(stateAfter(registered())?.status).toBe('proposed');
    expect(stateAfter(registered([alice]))?.status).toBe('proposed');
    expect(stateAfter(registered([alice]), consented(carol))).toEqual({
      terms,
      consents: [alice, carol],
      status: 'active',
      version: 2,
      at: TEN,
    });
  });
  it('is active at once where one principal is authority, owner and administrator', () =>
    expect(stateAfter(registered([alice], { owner: alice }))?.status).toBe('active'));
  it('holds no consent once withdrawn', () =>
    expect(stateAfter(registered([alice]), consented(carol), withdrawn(alice))).toMatchObject({ status: 'withdrawn', consents: [] }));
  it('may be registered anew', () =>
    given(agent, [registered([alice]), consented(carol), withdrawn(alice)])
      .when(register(admin))
      .thenEvents(registered()));
  it('meets its contracts', () => {
    for (const event of [registered([alice]), consented(carol), { ...withdrawn(alice), reason: 'left' }])
      expect(AgentEvent.parse(event)).toEqual(event);
    expect(AgentState.safeParse(stateAfter(registered([alice]), consented(carol))).success).toBe(true);
  });
});
