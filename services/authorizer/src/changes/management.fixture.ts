import {
  type Address,
  type CapabilityConstraints,
  type PolicyDocument,
  type SettingsPatch,
  type StopTarget,
  timestampOf,
} from '@sharedos/contracts';
import { type World, admin, alice, bob, carol, contextAt, toRead } from '../authorizer.fixture.ts';
import { issueGrant } from './issue-grant.ts';
import { getAgent, registerAgent, withdrawAgent } from './register-agent.ts';
import { getPolicy, resumeStopped, setPolicy } from './set-policy.ts';
import { getSettings, setSettings } from './set-settings.ts';
import { stopTarget } from './stop-target.ts';

export const forbidReading: PolicyDocument = {
  language: 'sharedos.rules/1',
  rules: [{ id: 'no-reading', effect: 'forbid', namespaces: ['files'], actions: ['read'] }],
};
export const nothingForbidden: PolicyDocument = { language: 'sharedos.rules/1', rules: [] };
export const theAgent: StopTarget = { kind: 'agent', agent: bob };
export const everybody: StopTarget = { kind: 'namespace' };
export const refusedWith = (code: string, retryable = false) => ({ ok: false, error: { code, retryable } });

/** The commands of one replica, as whoever sends them sees it. */
export const managing = (world: World) => {
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
export const verdictOf = async (world: World, token?: string) =>
  world.verdict(token ?? (await world.opened()).token, reading, contextAt(timestampOf(world.clock.now())));
