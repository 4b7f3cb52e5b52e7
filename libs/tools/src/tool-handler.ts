import type { AccessContext, CapabilityRequirement, JsonObj, ToolCall, ToolDefinition, ToolResult } from '@sharedos/contracts';

/**
 * A tool that a host registers. The kernel decides on the requirement that `resolveRequirement` makes of the parsed call, and
 * hands the handler that same frozen call. @see spec/tools.md §6
 */
export interface ToolHandler {
  readonly definition: ToolDefinition;
  /** Reads the raw arguments; what it returns is what is decided on and used. A throw is `invalid_tool_arguments`. */
  parseArguments(raw: JsonObj): JsonObj;
  /** What exactly this call needs. Absent: the declared capability. A throw is `tool_requirement_resolution_failed`. */
  resolveRequirement?(context: AccessContext, call: ToolCall): CapabilityRequirement;
  invoke(context: AccessContext, call: ToolCall, cancel: AbortSignal): Promise<ToolResult>;
}

/** A plane of resources, reached only after authority was decided. @see spec/tools.md §3 */
export interface ResourceProvider {
  readonly namespace: string;
  invoke(
    operation: import('@sharedos/contracts').ResourceOperation,
    cancel: AbortSignal,
  ): Promise<import('@sharedos/contracts').ResourceResult>;
}
