import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { UniqueIds } from '../access.ts';
import { Json } from '../json.ts';
import { Address, AgentAddress } from '../principals.ts';
import { Action, NameId, Path, Purpose } from '../scalars.ts';
import { Ts } from '../time.ts';
import { Because, ChangeCount, CommandId } from './management.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** A time of day in UTC, `HH:MM`. */
export const TimeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/);

/** From `from`, inclusive, to `to`, exclusive, every day in UTC; past midnight when `to` is not after `from`. */
export const DailyWindow = z.strictObject({ from: TimeOfDay, to: TimeOfDay });
export type DailyWindow = z.infer<typeof DailyWindow>;

const rule = { id: NameId, reason: Because.optional() };

/**
 * Forbids what meets all that it states; what it leaves out it does not ask about. `path` covers itself and all below it. The
 * daily window is judged at the turn's admission, so a turn is under one policy for its whole length.
 */
export const ForbidRule = z.strictObject({
  ...rule,
  effect: z.literal('forbid'),
  namespaces: UniqueIds(64, 1).optional(),
  path: Path.optional(),
  actions: bounded(z.array(Action), 1, 64).optional(),
  actors: bounded(z.array(Address), 1, 64).optional(),
  purposes: bounded(z.array(Purpose), 1, 64).optional(),
  daily: DailyWindow.optional(),
});
export type ForbidRule = z.infer<typeof ForbidRule>;

/** Forbids an actor everything; without an actor, everybody. @see StopTarget for what a freeze of everybody leaves open */
export const FreezeRule = z.strictObject({ ...rule, effect: z.literal('freeze'), actor: Address.optional() });
export type FreezeRule = z.infer<typeof FreezeRule>;

export const PolicyRule = z.discriminatedUnion('effect', [ForbidRule, FreezeRule]);
export type PolicyRule = z.infer<typeof PolicyRule>;

export const RULES_LANGUAGE = 'sharedos.rules/1';
export const POLICY_RULES_MAX = 512;

/** A policy in the language that every authorizer understands: rules that only forbid. Their order does not matter. */
export const RulesDocument = z.strictObject({
  language: z.literal(RULES_LANGUAGE),
  rules: bounded(z.array(PolicyRule), 0, POLICY_RULES_MAX),
});
export type RulesDocument = z.infer<typeof RulesDocument>;

/** A policy in a language that the host installed; the authorizers that do not know it answer `host_policy_unavailable`. */
export const ForeignDocument = z.strictObject({
  language: z.string().regex(/^(?!sharedos\.)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\/\d{1,4}$/),
  source: Json,
});
export type ForeignDocument = z.infer<typeof ForeignDocument>;

/** The host's ceiling over what grants allow, as data: it forbids and never allows. */
export const PolicyDocument = z.union([RulesDocument, ForeignDocument]);
export type PolicyDocument = z.infer<typeof PolicyDocument>;

/**
 * What is stopped: one agent, or the whole namespace. A stopped namespace still answers its operators: the management plane
 * (`sharedos.admin`) and the audit records are left open, so that the stop can be looked into and ended.
 */
export const StopTarget = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('agent'), agent: AgentAddress }),
  z.strictObject({ kind: z.literal('namespace') }),
]);
export type StopTarget = z.infer<typeof StopTarget>;

/** One stop in force. It is no part of the document, so setting the policy anew does not end it. */
export const Stop = z.strictObject({ target: StopTarget, reason: Because, by: Address, at: Ts });
export type Stop = z.infer<typeof Stop>;
export const STOPS_MAX = 1_024;

/** The policy of a namespace at a revision. `version` counts the changes of the document and of the stops. */
export const PolicyState = z.strictObject({
  document: PolicyDocument,
  stops: bounded(z.array(Stop), 0, STOPS_MAX),
  version: ChangeCount,
});
export type PolicyState = z.infer<typeof PolicyState>;

export const PolicySet = z.strictObject({ type: z.literal('PolicySet'), document: PolicyDocument });
export const Stopped = z.strictObject({ type: z.literal('Stopped'), stop: Stop });
export const Resumed = z.strictObject({ type: z.literal('Resumed'), target: StopTarget, reason: Because.optional() });

/** What happens to the policy of a namespace. */
export const PolicyEvent = z.discriminatedUnion('type', [PolicySet, Stopped, Resumed]);
export type PolicyEvent = z.infer<typeof PolicyEvent>;

/** Replaces the document. */
export const PolicySetRequest = wireMessage(
  'policy.set/1',
  z.strictObject({ commandId: CommandId, document: PolicyDocument, expectedVersion: ChangeCount.optional() }),
);
export type PolicySetRequest = z.infer<typeof PolicySetRequest.schema>;

export const PolicyGet = wireMessage('policy.get/1', z.strictObject({}));
export type PolicyGet = z.infer<typeof PolicyGet.schema>;

export const PolicyAt = z.strictObject({ policy: PolicyState, revision: Revision });
export type PolicyAt = z.infer<typeof PolicyAt>;
export const PolicyReply = replyMessage('policy.reply/1', PolicyAt);

/**
 * Stops an agent, or the namespace: no turn opened from then on may do anything, and an agent's live grants are revoked. Turns
 * that are open go on as of their own revision until they are cancelled, which is the caller's next step.
 */
export const PolicyStop = wireMessage('policy.stop/1', z.strictObject({ commandId: CommandId, target: StopTarget, reason: Because }));
export type PolicyStop = z.infer<typeof PolicyStop.schema>;

/** `revokedNow`: grants that this command revoked. Not `complete`: there were more; send the same command again for them. */
export const StopDone = z.strictObject({
  policy: PolicyState,
  revision: Revision,
  revokedNow: z.int().min(0),
  complete: z.boolean(),
});
export type StopDone = z.infer<typeof StopDone>;
export const PolicyStopReply = replyMessage('policy.stop.reply/1', StopDone);

/** Ends a stop. What was revoked stays revoked: authority is issued anew, under new ids. */
export const PolicyResume = wireMessage(
  'policy.resume/1',
  z.strictObject({ commandId: CommandId, target: StopTarget, reason: Because.optional() }),
);
export type PolicyResume = z.infer<typeof PolicyResume.schema>;
