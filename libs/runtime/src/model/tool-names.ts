import type { ToolDefinition } from '@sharedos/contracts';
import { portableToolName } from '@sharedos/kernel';
import type { DeclaredTool } from './model-wire.ts';

/** Tools under names that every provider takes, and the way back. */
export interface ToolNames {
  readonly declared: readonly DeclaredTool[];
  /** The tool meant by a name on the wire. What no tool of the turn has is passed on, so that its refusal is made and recorded. */
  toolOf(wireName: string): string;
  /** Whether a name on the wire stands for this tool of the turn. */
  names(wireName: string, tool: string): boolean;
}

const PORTABLE = /^[a-zA-Z0-9_-]+$/;

/** @throws RangeError when two tools would have one name on the wire, or a name has a character that no provider takes. */
export const portableNames = (tools: readonly ToolDefinition[]): ToolNames => {
  const byWireName = new Map<string, string>();
  const declared = tools.map(({ name, description, inputSchema }): DeclaredTool => {
    const wireName = portableToolName(name);
    if (!PORTABLE.test(wireName)) throw new RangeError(`the tool ${name} has no portable name`);
    const other = byWireName.get(wireName);
    if (other !== undefined) throw new RangeError(`the tools ${other} and ${name} would have one name, ${wireName}`);
    byWireName.set(wireName, name);
    return { name: wireName, description, inputSchema };
  });
  return {
    declared,
    toolOf: (wireName) => byWireName.get(wireName) ?? wireName.replaceAll('_', '.'),
    names: (wireName, tool) => byWireName.get(wireName) === tool,
  };
};
