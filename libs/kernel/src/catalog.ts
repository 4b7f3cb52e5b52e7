import { type PublishedTool, type ToolCatalog, type ToolDefinition, PROTOCOL_VERSION, byCodeUnit, hashOf } from '@sharedos/contracts';
import { invariant } from './decider.ts';

/**
 * What a model or harness may see of a tool: never the required capability, which is a ceiling and not what a call needs.
 *
 * @see spec/contracts.md §4, "PublishedTool"
 */
export const publishTool = ({
  name,
  description,
  inputSchema,
  outputSchema,
  annotations,
  readWrite,
  namespace,
  source,
}: ToolDefinition): PublishedTool => ({
  name,
  description,
  inputSchema,
  ...(outputSchema === undefined ? {} : { outputSchema }),
  annotations: {
    readOnlyHint: annotations?.readOnly ?? readWrite === 'read',
    ...(annotations?.destructive === undefined ? {} : { destructiveHint: annotations.destructive }),
    ...(annotations?.idempotent === undefined ? {} : { idempotentHint: annotations.idempotent }),
  },
  metadata: { namespace, source },
});

/** Publishes the tools of one turn, sorted by name. Names are unique: a registry that let two through is broken. */
export const publishToolCatalog = (executionId: string, definitions: readonly ToolDefinition[]): ToolCatalog => {
  invariant(new Set(definitions.map(({ name }) => name)).size === definitions.length, 'tool names are unique in a catalogue');
  const tools = definitions.map(publishTool).sort(byName);
  return { version: PROTOCOL_VERSION, executionId, catalogHash: catalogHash(tools), tools };
};

/** SHA-256 of the canonical JSON of the published tools sorted by name; who publishes them, and for which turn, does not count. */
export const catalogHash = (tools: readonly PublishedTool[]): string => hashOf([...tools].sort(byName));

/** The name of a tool where dots are not allowed. Presentation only: two names may share one. */
export const portableToolName = (name: string): string => name.replaceAll('.', '_');

const byName = (a: PublishedTool, b: PublishedTool): number => byCodeUnit(a.name, b.name);
