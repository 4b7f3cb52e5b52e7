import { type AccessContext, CapabilityRequirement, type ExactRequirement, JsonObj, type ToolCall } from '@sharedos/contracts';
import { sealed } from './contract-value.ts';
import type { ToolHandler } from './tool-handler.ts';

/** One call, read: what is decided on, and the frozen call that the handler gets if it may run. */
export interface ReadCall {
  readonly exact: ExactRequirement;
  readonly call: ToolCall;
  /** What a parser or resolver threw; for the operator's log alone. */
  readonly thrown?: unknown;
}

/**
 * Parses the arguments and makes the exact requirement of them. A failure is told to the caller only if it may discover the
 * tool, so it goes to the decision and is not answered here.
 *
 * @see spec/turns.md §9, rows 7 and 8
 */
export const readCall = (handler: ToolHandler, context: AccessContext, given: ToolCall): ReadCall => {
  let call = given;
  try {
    call = sealed({ ...given, arguments: structuredClone(JsonObj.parse(handler.parseArguments(given.arguments))) });
  } catch (thrown) {
    return { exact: { failure: 'invalid_tool_arguments' }, call, thrown };
  }
  try {
    const requirement = handler.resolveRequirement?.(context, call) ?? handler.definition.requiredCapability;
    return { exact: { requirement: CapabilityRequirement.parse(requirement) }, call };
  } catch (thrown) {
    return { exact: { failure: 'tool_requirement_resolution_failed' }, call, thrown };
  }
};
