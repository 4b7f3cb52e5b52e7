import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { Instant, Json, ToolCall, ToolResult } from '@sharedos/contracts';
import { openTurnBridge } from '../harness/turn-bridge.ts';
import type { Runtime } from '../runtime.ts';

/**
 * A runtime as an outside harness: its calls go over a real bridge with the official client. What it ends with means that the
 * harness stopped; a turn that asked for a human ends with the ask.
 */
export const overMcp =
  (run: Runtime['run'], clock: () => Instant): Runtime['run'] =>
  async (request, host, signal) => {
    const turn = await openTurnBridge(request, host, signal, { clock, serverName: 'sharedos' });
    const client = new Client({ name: 'harness', version: '1' });
    try {
      const requestInit = { headers: { authorization: `Bearer ${turn.token}` } };
      await client.connect(new StreamableHTTPClientTransport(new URL(turn.url), { requestInit }) as never);
      const invokeTool = async (call: ToolCall): Promise<ToolResult> => {
        const answer = await client.callTool({ name: call.tool, arguments: { ...call.arguments } }, undefined, { signal });
        return toolResult(call, answer as CallToolResult, request.context.now);
      };
      const outcome = await run(request, { ...host, invokeTool }, signal);
      const { reason, callsAfterEscalation } = turn.latch;
      if (reason === undefined) return outcome;
      return { type: 'escalate', reason, metadata: { harnessOutcome: outcome.type, callsAfterEscalation } };
    } finally {
      await client.close();
      await turn.close();
    }
  };

/** What a harness can know of a result, as a result. */
const toolResult = (call: ToolCall, { content, isError }: CallToolResult, completedAt: string): ToolResult => {
  const [block] = content;
  const text = block?.type === 'text' ? block.text : '';
  const answered = { callId: call.id, tool: call.tool, completedAt };
  if (isError !== true) return { status: 'succeeded', ...answered, output: readable(text) };
  const { status, code, message } = JSON.parse(text) as {
    readonly status: 'denied' | 'failed';
    readonly code: string;
    readonly message: string;
  };
  return { status, ...answered, error: { code, message } };
};

/** A text that is not JSON was a text. */
const readable = (text: string): Json => {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
};
