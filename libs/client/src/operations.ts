import {
  type OperationAt,
  OperationList,
  OperationListReply,
  OperationReply,
  OperationResolve,
  OperationShow,
  type OperationsFound,
  type Result,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

/** What the ledger holds of everybody's turns and messages. For whoever administers the ledger of the namespace. */
export interface OperationCommands {
  show(named: OperationShow): Promise<Result<OperationAt, ClientError>>;
  /** Newest first; above all `state: 'unknown'`, those that left a call of which nobody can tell whether it happened. */
  list(query?: OperationList): Promise<Result<OperationsFound, ClientError>>;
  /** States what became of an unknown call. The same again changes nothing; anything else is refused from then on. */
  resolve(found: OperationResolve): Promise<Result<OperationAt, ClientError>>;
}

export const operationCommands = (session: Session): OperationCommands => ({
  show: (named) => ask(session, 'operation.show', OperationShow, named, OperationReply),
  list: (query = {}) => ask(session, 'operation.list', OperationList, query, OperationListReply),
  resolve: (found) => ask(session, 'operation.resolve', OperationResolve, found, OperationReply),
});
