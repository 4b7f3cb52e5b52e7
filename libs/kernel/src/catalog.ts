import {
  type PublishedTool,
  type ToolCatalog,
  type ToolDefinition,
  PROTOCOL_VERSION,
  byCodeUnit,
  canonicalJson,
  sha256,
} from '@sharedos/contracts';
import { sealed } from './contract-value.ts';
import { invariant } from './decider.ts';

/** What was published of definitions that can never change. A registry's are such, and one is published on every listing. */
const published = new WeakMap<ToolDefinition, PublishedTool>();
/** The canonical text of what those published tools are hashed by. */
const canonicalTexts = new WeakMap<PublishedTool, string>();

/**
 * What a model or harness may see of a tool: never the required capability, which is a ceiling and not what a call needs.
 *
 * @see spec/contracts.md §4, "PublishedTool"
 */
export const publishToolDefinition = (definition: ToolDefinition): PublishedTool => {
  const known = published.get(definition);
  if (known !== undefined) return known;
  const tool = projected(definition);
  if (!isFrozenThrough(definition)) return tool;
  const kept = sealed(tool);
  published.set(definition, kept);
  canonicalTexts.set(kept, textOf(kept));
  return kept;
};

const projected = ({
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

/** Whether nobody can change any part of a value: a host may have frozen only the outside of what it keeps. */
const isFrozenThrough = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozenThrough));

/**
 * Publishes a permission-filtered catalogue, sorted by name.
 *
 * @throws Defect for a name that is there twice: a registry that let two through is broken.
 */
export const publishToolCatalog = (definitions: readonly ToolDefinition[]): readonly PublishedTool[] => {
  invariant(new Set(definitions.map(({ name }) => name)).size === definitions.length, 'tool names are unique in a catalogue');
  return definitions.map(publishToolDefinition).sort(byName);
};

export interface ToolCatalogOptions {
  readonly executionId: string;
}

/** The catalogue of one turn as a harness receives it, hash included. */
export const buildToolCatalog = async (
  definitions: readonly ToolDefinition[],
  { executionId }: ToolCatalogOptions,
): Promise<ToolCatalog> => {
  const tools = publishToolCatalog(definitions);
  return { version: PROTOCOL_VERSION, executionId, catalogHash: toolCatalogHash(tools), tools: [...tools] };
};

/** The fields of a published tool that its catalogue's hash covers. Who publishes it, and for which turn, is not among them. */
export const CATALOG_HASH_FIELDS: readonly string[] = Object.freeze([
  'annotations',
  'description',
  'inputSchema',
  'metadata',
  'name',
  'outputSchema',
]);

/** SHA-256 of the canonical JSON of the published tools sorted by name; nothing but {@link CATALOG_HASH_FIELDS} counts. */
export const toolCatalogHash = (tools: readonly PublishedTool[]): string => {
  const [first] = tools;
  const lately = first === undefined ? undefined : hashed.get(first);
  if (lately !== undefined && sameTools(lately.tools, tools)) return lately.hash;
  const texts = [...tools].sort(byName).map((tool) => canonicalTexts.get(tool) ?? textOf(tool));
  const hash = sha256(`[${texts.join(',')}]`);
  // A tool whose text is kept can never change; of any other, the next look may find something else.
  if (first !== undefined && tools.every((tool) => canonicalTexts.has(tool))) hashed.set(first, { tools: [...tools], hash });
  return hash;
};

/** The catalogue hashed last of those that begin with a tool: turn after turn lists the same one, and hashing it is most of the work. */
const hashed = new WeakMap<PublishedTool, { readonly tools: readonly PublishedTool[]; readonly hash: string }>();

const sameTools = (a: readonly PublishedTool[], b: readonly PublishedTool[]): boolean =>
  a.length === b.length && a.every((tool, index) => tool === b[index]);

const textOf = (tool: PublishedTool): string =>
  canonicalJson(Object.fromEntries(Object.entries(tool).filter(([field]) => CATALOG_HASH_FIELDS.includes(field))));

/** {@link toolCatalogHash} for a host. */
export const catalogHash = async (tools: readonly PublishedTool[]): Promise<string> => toolCatalogHash(tools);

/** The hash as a record of an experiment renders it: with its algorithm. */
export const formatCatalogHash = (hash: string): string => `sha256:${hash}`;

/** The name of a tool where dots are not allowed. Presentation only: two names may share one. */
export const portableToolName = (name: string): string => name.replaceAll('.', '_');

const byName = (a: PublishedTool, b: PublishedTool): number => byCodeUnit(a.name, b.name);
