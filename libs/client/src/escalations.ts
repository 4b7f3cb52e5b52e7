import { randomUUID } from 'node:crypto';
import {
  type EscalationAt,
  EscalationList,
  EscalationListReply,
  EscalationReply,
  type EscalationResolution,
  EscalationResolve,
  EscalationShow,
  type EscalationsAt,
  type Result,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

/** Questions that turns ended on. Nothing resumes a turn: an approval is a grant, which the agent's next turn may find. */
export interface EscalationCommands {
  /** Those that the caller asked, is asked, owns what is asked for, or reviews for its owner, newest first. */
  list(query?: EscalationList): Promise<Result<EscalationsAt, ClientError>>;
  show(escalationId: string): Promise<Result<EscalationAt, ClientError>>;
  /**
   * Answers one as its reviewer, as the owner or in its place, or withdraws one's own. An answer about one call allows that call, once.
   * `commandId`: sending the same one again repeats the answer.
   */
  resolve(escalationId: string, resolution: EscalationResolution, commandId?: string): Promise<Result<EscalationAt, ClientError>>;
}

export const escalationCommands = (session: Session): EscalationCommands => ({
  list: (query = {}) => ask(session, 'escalation.list', EscalationList, query, EscalationListReply),
  show: (escalationId) => ask(session, 'escalation.show', EscalationShow, { escalationId }, EscalationReply),
  resolve: (escalationId, resolution, commandId = randomUUID()) =>
    ask(session, 'escalation.resolve', EscalationResolve, { commandId, escalationId, resolution }, EscalationReply),
});
