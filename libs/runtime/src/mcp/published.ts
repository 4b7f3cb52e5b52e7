import type { PublishedTool, ToolResult } from '@sharedos/contracts';
import { portableToolName } from '@sharedos/kernel';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

/** One tool of `tools/list`: all that a harness may know of it, and never what it would need to be called. */
export const listedTool = ({ metadata, ...tool }: PublishedTool): object => ({
  ...tool,
  _meta: {
    ...(metadata?.namespace === undefined ? {} : { 'sharedos/namespace': metadata.namespace }),
    ...(metadata?.source === undefined ? {} : { 'sharedos/source': metadata.source }),
  },
});

/**
 * Finds what a called name means: the exact name, else the only tool that is spelled so without dots. A name that is neither stays
 * as it is, so that the guess is refused and recorded where every call is.
 */
export const toolNames = (tools: readonly PublishedTool[]): ((called: string) => string) => {
  const exact = new Set(tools.map(({ name }) => name));
  const portable = new Map<string, string | undefined>();
  for (const { name } of tools) {
    const spelled = portableToolName(name);
    portable.set(spelled, portable.has(spelled) ? undefined : name);
  }
  return (called) => (exact.has(called) ? called : (portable.get(called) ?? called));
};

/**
 * A tool result as an MCP result. A denial or a failure is one too: as an error of the protocol it would look like a broken server,
 * and the harness would try again instead of reading why.
 */
export const callResult = (result: ToolResult, tool: PublishedTool | undefined): CallToolResult => {
  if (result.status === 'succeeded') {
    const { output } = result;
    const text = typeof output === 'string' ? output : JSON.stringify(output);
    const isObject = typeof output === 'object' && output !== null && !Array.isArray(output);
    return {
      content: [{ type: 'text', text }],
      isError: false,
      ...(tool?.outputSchema !== undefined && isObject ? { structuredContent: output as Record<string, unknown> } : {}),
    };
  }
  const { status, error } = result;
  const { code, message, retryable } = error;
  const body = { status, code, message, ...(retryable === undefined ? {} : { retryable }) };
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    isError: true,
    _meta: { 'sharedos/status': status, 'sharedos/code': code },
  };
};
