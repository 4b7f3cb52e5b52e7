import type { PublishedTool, ToolCall, ToolCatalog, ToolResult } from '@sharedos/contracts';
import { publishToolCatalog, toolCatalogHash } from '@sharedos/kernel';
import { ESCALATE, READ, START, toolNamed } from '../testing/turn-fixture.ts';
import { type McpBridge, type McpBridgeOptions, openMcpBridge } from './bridge.ts';
import { type EscalationLatch, createEscalationLatch } from './escalation-latch.ts';

export const STAT = toolNamed('files.stat', { readWrite: 'read', outputSchema: { type: 'object' }, annotations: { readOnly: true } });
export const TOOLS: readonly PublishedTool[] = publishToolCatalog([READ, STAT, ESCALATE, toolNamed('a.b_c'), toolNamed('a_b.c')]);

export const catalogOf = (tools: readonly PublishedTool[] = TOOLS): ToolCatalog => ({
  version: '1',
  executionId: 'exec-1',
  catalogHash: toolCatalogHash(tools),
  tools: [...tools],
});

export const answer = (call: ToolCall, output: unknown): ToolResult => ({
  status: 'succeeded',
  callId: call.id,
  tool: call.tool,
  completedAt: START,
  output: output as string,
});
export const refusal = (call: ToolCall, status: 'denied' | 'failed', code: string, retryable?: boolean): ToolResult => ({
  status,
  callId: call.id,
  tool: call.tool,
  completedAt: START,
  error: { code, message: 'No.', ...(retryable === undefined ? {} : { retryable }) },
});

export interface OpenBridge {
  readonly bridge: McpBridge;
  /** What reached the broker. */
  readonly calls: ToolCall[];
  readonly latch: EscalationLatch;
  readonly annotations: Map<string, unknown>;
  /** Sends one message and reads its one answer. */
  say(message: unknown): Promise<unknown>;
  request(method: string, params?: unknown): Promise<Record<string, unknown>>;
  call(name: string, given?: unknown): Promise<Record<string, unknown>>;
}

/** A bridge over a catalogue of five tools. A call echoes its arguments unless told otherwise. */
export const aBridge = (options: Partial<McpBridgeOptions> & { readonly tools?: readonly PublishedTool[] } = {}): OpenBridge => {
  const { tools = TOOLS, invoke = async (call) => answer(call, call.arguments), ...more } = options;
  const calls: ToolCall[] = [];
  const annotations = new Map<string, unknown>();
  const offered = new Set(tools.map(({ name }) => name));
  const latch = createEscalationLatch({ offered, completedAt: START, annotate: (key, value) => void annotations.set(key, value) });
  let ids = 0;
  const bridge = openMcpBridge({
    catalog: catalogOf(tools),
    traceId: 'trace-1',
    requestedAt: START,
    serverInfo: { name: 'sharedos', version: '1.0.0' },
    latch,
    ids: () => `call-${(ids += 1)}`,
    ...more,
    invoke: async (call) => {
      calls.push(call);
      return invoke(call);
    },
  });
  const say = async (message: unknown): Promise<unknown> => {
    const said = await bridge.handle(typeof message === 'string' ? message : JSON.stringify(message));
    return said.kind === 'answered' ? said.answer : said.kind;
  };
  const request = async (method: string, params?: unknown): Promise<Record<string, unknown>> =>
    (await say({ jsonrpc: '2.0', id: 7, method, ...(params === undefined ? {} : { params }) })) as Record<string, unknown>;
  return {
    bridge,
    calls,
    latch,
    annotations,
    say,
    request,
    call: async (name, given) => {
      const said = await request('tools/call', { name, ...(given === undefined ? {} : { arguments: given }) });
      return (said['result'] ?? said) as Record<string, unknown>;
    },
  };
};
