import type { AccessContext, CapabilityRequirement, JsonObj, ToolCall, ToolDefinition, ToolResult } from '@sharedos/contracts';

/**
 * A tool that a host registers. The kernel decides on the requirement that `resolveRequirement` makes of the parsed call, and
 * hands the handler that same frozen call. @see spec/tools.md §6
 */
export interface ToolHandler {
  readonly definition: ToolDefinition;
  /** Reads the raw arguments; what it returns is what is decided on and used. A throw, or no JSON object, is `invalid_tool_arguments`. */
  parseArguments(raw: JsonObj): unknown;
  /** What exactly this call needs. Absent: the declared capability. A throw is `tool_requirement_resolution_failed`. */
  resolveRequirement?(context: AccessContext, call: ToolCall): CapabilityRequirement;
  invoke(context: AccessContext, call: ToolCall, cancel: AbortSignal): Promise<ToolResult>;
}

/**
 * Supplies the tools of exactly one context, such as those of a user's own MCP servers. Asked once a turn, with the context of
 * the first operation that needs a catalogue; what it answers holds for the whole turn.
 */
export interface ContextToolProvider {
  readonly id: string;
  listTools(context: AccessContext, cancel: AbortSignal): Promise<readonly ToolHandler[]>;
}
