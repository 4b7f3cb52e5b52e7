import type { ClientError } from '@sharedos/client';
import { type ExecutionEvent, type JsonObj, JsonObj as JsonObject } from '@sharedos/contracts';
import { ESCALATE_TOOL, callResult, listedTool } from '@sharedos/runtime';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { type Catalogue, type Seat, pendingResult } from './seat.ts';

const INSTRUCTIONS =
  'Each call is decided by SharedOS from its exact arguments. A refusal is a result that says why; the list holds what may be possible at all.';

/**
 * One session of an MCP client over a seat. Every request is a turn of its own; what a turn finds in another state than the list that was
 * given last is told with `notifications/tools/list_changed`.
 */
export const mcpServer = (seat: Seat): Server => {
  const server = new Server(
    { name: 'sharedos', version: '0.1.0' },
    { capabilities: { tools: { listChanged: true } }, instructions: INSTRUCTIONS },
  );
  let listed: string | undefined;
  /** Once a human was asked for, nothing runs ahead of the answer. */
  let asked = false;

  const notice = async ({ catalogHash }: Catalogue): Promise<void> => {
    if (listed === undefined || listed === catalogHash) return;
    listed = catalogHash;
    await server.sendToolListChanged().catch(() => undefined);
  };

  server.setRequestHandler(ListToolsRequestSchema, async (_, { signal }) => {
    const known = await seat.catalogue({ signal });
    if (!known.ok) throw unhandled(known.error);
    listed = known.value.catalogHash;
    return {
      tools: known.value.tools.map(listedTool) as never,
      ...(listed === '' ? {} : { _meta: { 'sharedos/catalogHash': listed } }),
    };
  });

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification }) => {
    const { name } = params;
    const args = JsonObject.safeParse(params.arguments ?? {});
    if (!args.success) throw new McpError(ErrorCode.InvalidParams, 'The arguments are no JSON that is taken.');
    if (asked) return callResult(pendingResult(name), undefined);
    asked = name === ESCALATE_TOOL;
    const token = params._meta?.progressToken;
    const onEvent = ({ sequence, type }: ExecutionEvent): void => {
      const progress = { progressToken: token as string | number, progress: sequence + 1, message: type };
      void sendNotification({ method: 'notifications/progress', params: progress }).catch(() => undefined);
    };
    const called = await seat.call(name, args.data as JsonObj, { signal, ...(token === undefined ? {} : { onEvent }) });
    if (asked && !(called.ok && called.value.escalated)) asked = false;
    if (!called.ok) throw unhandled(called.error);
    const { result, catalogue } = called.value;
    if (catalogue !== undefined) await notice(catalogue);
    return callResult(
      result,
      catalogue?.tools.find((tool) => tool.name === result.tool),
    );
  });
  return server;
};

/** Nobody could find out, or nobody was asked: an error of the protocol, since no decision was made. */
const unhandled = (error: ClientError): McpError =>
  new McpError(
    ErrorCode.InternalError,
    error.kind === 'refused' ? `${error.error.code}: ${error.error.message}` : 'unavailable, try again',
  );
