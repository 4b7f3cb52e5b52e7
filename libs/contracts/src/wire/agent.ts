import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { JsonObj } from '../json.ts';
import { Address } from '../principals.ts';
import { Id, NameId } from '../scalars.ts';
import { Ts } from '../time.ts';
import { Because, ChangeCount, CommandId } from './management.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** What runs an agent's turns: the name of a runtime or driver that the executors have, and what it is told at its start. */
export const RuntimeChoice = z.strictObject({ runtime: Id, config: JsonObj });
export type RuntimeChoice = z.infer<typeof RuntimeChoice>;

/** Under whose authority, over whose resources and by which runtime an agent answers a message. */
export const AgentTerms = z.strictObject({ agentId: NameId, authority: Address, owner: Address, runtime: RuntimeChoice.optional() });
export type AgentTerms = z.infer<typeof AgentTerms>;

/**
 * - `proposed`: the authority, the owner or both have not agreed to these terms yet. No message starts a turn under them.
 * - `active`: both have.
 * - `withdrawn`: one of them, or an administrator, took it back. It may be registered anew.
 */
export const AgentStatus = z.enum(['proposed', 'active', 'withdrawn']);

export const AgentState = z.strictObject({
  terms: AgentTerms,
  status: AgentStatus,
  /** Who agreed to exactly these terms: of the authority and the owner, those that asked for them. */
  consents: bounded(z.array(Address), 0, 2),
  version: ChangeCount,
  at: Ts,
});
export type AgentState = z.infer<typeof AgentState>;

/** New terms; they take the place of what was registered before, and of what was agreed to it. */
export const AgentRegistered = z.strictObject({
  type: z.literal('AgentRegistered'),
  terms: AgentTerms,
  consents: bounded(z.array(Address), 0, 2),
  registeredAt: Ts,
});
export const AgentConsented = z.strictObject({ type: z.literal('AgentConsented'), by: Address, consentedAt: Ts });
export const AgentWithdrawn = z.strictObject({
  type: z.literal('AgentWithdrawn'),
  by: Address,
  withdrawnAt: Ts,
  reason: Because.optional(),
});
export const AgentEvent = z.discriminatedUnion('type', [AgentRegistered, AgentConsented, AgentWithdrawn]);
export type AgentEvent = z.infer<typeof AgentEvent>;

/**
 * States the terms of an agent, for which one must manage agents, or agrees to terms that stand: the authority and the owner
 * each agree by asking for exactly those terms themselves.
 */
export const AgentRegister = wireMessage(
  'agent.register/1',
  z.strictObject({ commandId: CommandId, terms: AgentTerms, expectedVersion: ChangeCount.optional() }),
);
export type AgentRegister = z.infer<typeof AgentRegister.schema>;

/** Takes a registration back: its authority, its owner, or whoever manages agents. */
export const AgentWithdraw = wireMessage(
  'agent.withdraw/1',
  z.strictObject({ commandId: CommandId, agentId: NameId, reason: Because.optional() }),
);
export type AgentWithdraw = z.infer<typeof AgentWithdraw.schema>;

/** For the agent itself, its authority, its owner, and whoever manages agents; to others it is not there. */
export const AgentGet = wireMessage('agent.get/1', z.strictObject({ agentId: NameId }));
export type AgentGet = z.infer<typeof AgentGet.schema>;

export const AgentAt = z.strictObject({ agent: AgentState, revision: Revision });
export type AgentAt = z.infer<typeof AgentAt>;
export const AgentReply = replyMessage('agent.reply/1', AgentAt);
