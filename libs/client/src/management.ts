import { randomUUID } from 'node:crypto';
import {
  type AgentAt,
  AgentGet,
  AgentRegister,
  AgentReply,
  type AgentTerms,
  AgentWithdraw,
  type PolicyAt,
  type PolicyDocument,
  PolicyGet,
  PolicyReply,
  PolicyResume,
  PolicySetRequest,
  PolicyStop,
  PolicyStopReply,
  type Result,
  type SettingsAt,
  SettingsGet,
  type SettingsPatch,
  SettingsReply,
  SettingsSetRequest,
  type StopDone,
  type StopTarget,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

/**
 * `commandId`: sending the same one again repeats the answer and changes nothing; one is minted when absent. `expectedVersion`: the
 * version that the change was written against; `version_conflict` when somebody changed the thing meanwhile.
 */
export interface ChangeOptions {
  readonly commandId?: string;
  readonly expectedVersion?: number;
}

/** The ceiling over what grants allow, and what is stopped. For whoever manages the policy of the namespace. */
export interface PolicyCommands {
  get(): Promise<Result<PolicyAt, ClientError>>;
  /** Replaces the document. What is stopped stays stopped. */
  set(document: PolicyDocument, options?: ChangeOptions): Promise<Result<PolicyAt, ClientError>>;
  /** Once this is answered, nothing opened from then on may do anything. Not `complete`: send the same command again. */
  stop(target: StopTarget, reason: string, commandId?: string): Promise<Result<StopDone, ClientError>>;
  /** Ends a stop. What was revoked stays revoked. */
  resume(target: StopTarget, reason?: string, commandId?: string): Promise<Result<PolicyAt, ClientError>>;
}

export interface SettingsCommands {
  get(): Promise<Result<SettingsAt, ClientError>>;
  /** Changes the settings that are stated, and leaves the others. */
  set(settings: SettingsPatch, options?: ChangeOptions): Promise<Result<SettingsAt, ClientError>>;
}

/** Under whose authority, over whose resources and by which runtime agents answer messages. */
export interface AgentCommands {
  get(agentId: string): Promise<Result<AgentAt, ClientError>>;
  /** States terms, or agrees to terms that stand: the authority and the owner each agree by asking for exactly those terms. */
  register(terms: AgentTerms, options?: ChangeOptions): Promise<Result<AgentAt, ClientError>>;
  withdraw(agentId: string, reason?: string, commandId?: string): Promise<Result<AgentAt, ClientError>>;
}

const because = (reason: string | undefined) => (reason === undefined ? {} : { reason });
const command = ({ commandId = randomUUID(), expectedVersion }: ChangeOptions) => ({
  commandId,
  ...(expectedVersion === undefined ? {} : { expectedVersion }),
});

export const policyCommands = (session: Session): PolicyCommands => ({
  get: () => ask(session, 'policy.get', PolicyGet, {}, PolicyReply),
  set: (document, options = {}) => ask(session, 'policy.set', PolicySetRequest, { ...command(options), document }, PolicyReply),
  stop: (target, reason, commandId = randomUUID()) =>
    ask(session, 'policy.stop', PolicyStop, { commandId, target, reason }, PolicyStopReply),
  resume: (target, reason, commandId = randomUUID()) =>
    ask(session, 'policy.resume', PolicyResume, { commandId, target, ...because(reason) }, PolicyReply),
});

export const settingsCommands = (session: Session): SettingsCommands => ({
  get: () => ask(session, 'settings.get', SettingsGet, {}, SettingsReply),
  set: (settings, options = {}) => ask(session, 'settings.set', SettingsSetRequest, { ...command(options), settings }, SettingsReply),
});

export const agentCommands = (session: Session): AgentCommands => ({
  get: (agentId) => ask(session, 'agent.get', AgentGet, { agentId }, AgentReply),
  register: (terms, options = {}) => ask(session, 'agent.register', AgentRegister, { ...command(options), terms }, AgentReply),
  withdraw: (agentId, reason, commandId = randomUUID()) =>
    ask(session, 'agent.withdraw', AgentWithdraw, { commandId, agentId, ...because(reason) }, AgentReply),
});
