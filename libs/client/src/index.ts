export type { AgentOptions, AgentStep, Decide, RunningAgent } from './agent.ts';
export type { AuditTail, AuditTailOptions, Gap } from './audit-tail.ts';
export * from './client-error.ts';
export * from './connect-sharedos.ts';
export type { GrantCommands } from './grants.ts';
export type { Inbox, OutgoingMessage } from './messages.ts';
export { type NewTurn, type ScriptedCall, newTurn } from './new-turn.ts';
export type { RecordQueries } from './records.ts';
export type { SubmitOptions, SubmittedTurn, TurnAnswer, Turns, TurnWatcher } from './turns.ts';
