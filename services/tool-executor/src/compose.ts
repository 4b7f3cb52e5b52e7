import { type Route, route } from '@sharedos/bus';
import {
  ExecutionControl,
  ExecutionControlReply,
  OperationList,
  OperationListReply,
  OperationReply,
  OperationResolve,
  OperationShow,
  ToolNamespacesReply,
  ToolsList,
  ToolsNamespaces,
  ToolsPageReply,
  ToolsUpdate,
  TurnCancel,
  TurnCancelReply,
  TurnGet,
  TurnGetReply,
  TurnList,
  TurnListReply,
} from '@sharedos/contracts';
import { cancelTurn } from './cancel-turn.ts';
import { controlExecution } from './control-execution.ts';
import { listOperations } from './list-operations.ts';
import { listTools } from './list-tools.ts';
import { listTurns } from './list-turns.ts';
import { mcpRoutes } from './mcp/mcp-routes.ts';
import { withinRate } from './namespace-limits.ts';
import type { Ports } from './ports.ts';
import { getTurn } from './read-turns.ts';
import { resolveOperation } from './resolve-operation.ts';
import { showOperation } from './show-operation.ts';
import { takeTurn } from './take-turn.ts';
import { readToolNamespaces, updateToolNamespaces } from './tool-namespaces.ts';

/** All that the tool-executor does, on one screen: it takes turns from the queue, and answers for them. */
export const composeToolExecutor = (ports: Ports): { readonly take: ReturnType<typeof takeTurn>; readonly routes: readonly Route[] } => ({
  take: takeTurn(ports),
  routes: [
    route('turn.cancel', { request: TurnCancel, reply: TurnCancelReply, handle: cancelTurn(ports) }),
    route('turn.get', { request: TurnGet, reply: TurnGetReply, handle: getTurn(ports) }),
    route('turn.list', { request: TurnList, reply: TurnListReply, handle: listTurns(ports) }),
    route('operation.show', { request: OperationShow, reply: OperationReply, handle: showOperation(ports) }),
    route('operation.list', { request: OperationList, reply: OperationListReply, handle: listOperations(ports) }),
    route('operation.resolve', { request: OperationResolve, reply: OperationReply, handle: resolveOperation(ports) }),
    route('tools.list', { request: ToolsList, reply: ToolsPageReply, handle: listTools(ports) }),
    route('tools.namespaces', { request: ToolsNamespaces, reply: ToolNamespacesReply, handle: readToolNamespaces(ports) }),
    route('tools.update', { request: ToolsUpdate, reply: ToolNamespacesReply, handle: updateToolNamespaces(ports) }),
    ...(ports.mcp === undefined ? [] : mcpRoutes({ ...ports.mcp, audit: ports.audit, clock: ports.clock, ids: ports.ids })),
    route('execution.control', { request: ExecutionControl, reply: ExecutionControlReply, handle: controlExecution(ports) }),
  ].map((one) => withinRate(ports, one)),
});
