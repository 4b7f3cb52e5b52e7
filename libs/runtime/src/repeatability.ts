import type { ToolDefinition } from '@sharedos/contracts';

/**
 * Whether a turn may be run again without harm: only while every call that went to the kernel and was not refused there was of a
 * repeatable tool. What the kernel listed says which tools are; the runtime's word never does.
 *
 * @see spec/turns.md §10, "Retry hint"
 */
export interface Repeatability {
  readonly harmless: boolean;
  /** A call goes to the kernel. Until it is known to have been refused it may have had its effect, stopped or not. */
  entered(tool: string): void;
  refused(tool: string): void;
}

export const createRepeatability = (tools: readonly ToolDefinition[]): Repeatability => {
  const repeatable = new Set(
    tools.filter((tool) => tool.readWrite === 'read' || tool.annotations?.idempotent === true).map((tool) => tool.name),
  );
  let mayHaveActed = 0;
  return {
    get harmless() {
      return mayHaveActed === 0;
    },
    entered: (tool) => {
      if (!repeatable.has(tool)) mayHaveActed += 1;
    },
    refused: (tool) => {
      if (!repeatable.has(tool)) mayHaveActed -= 1;
    },
  };
};
