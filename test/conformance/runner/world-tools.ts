import {
  type AccessContext,
  Address,
  type CapabilityRequirement,
  type Json,
  type JsonObj,
  Path,
  type ToolCall,
  type ToolResult,
} from '@sharedos/contracts';
import type { ResourceProvider, ToolHandler } from '@sharedos/kernel';
import { FILES_PLANE, REPO_PLANE, type ResourcePlane, type ResourceToolRow, resourceTools } from '@sharedos/tools';
import { z } from 'zod';
import { type Bag, type Step, UnknownToRunner, onlyKnown } from './case.ts';

/** The standard planes are what `@sharedos/tools` ships: their names, actions, parsers and ceilings are what the cases judge. */
const STANDARD: Readonly<Record<string, ResourcePlane>> = { files: FILES_PLANE, repo: REPO_PLANE };

/** The tools of a standard plane over a provider that always succeeds. */
export const standardTools = (plane: string): readonly ToolHandler[] => {
  const known = STANDARD[plane];
  if (known === undefined) throw new UnknownToRunner(`no standard plane is called ${plane}`);
  const provider: ResourceProvider = {
    namespace: plane,
    invoke: async ({ operationId, context }) => ({ status: 'succeeded', operationId, completedAt: context.now, output: { done: true } }),
  };
  // What an always succeeding provider answers with is nobody's published output.
  const rows: Record<string, ResourceToolRow> = {};
  for (const [verb, row] of Object.entries(known.rows)) rows[verb] = { ...row, output: z.unknown() };
  return resourceTools({ namespace: plane, rows }, provider, () => 0);
};

const TOOL_KEYS = ['name', 'namespace', 'readWrite', 'requires', 'resolve', 'args', 'outcome', 'throwsText', 'output', 'nested'];
const RESOLVE_KEYS = ['path', 'namespace', 'action', 'owner'];
const OUTCOMES = ['throws', 'other-call', 'other-tool', 'garbage'];

/** A tool of the case's own host. `nested` performs steps through the kernel that is invoking it. */
export const worldTool = (given: Bag, nested: (step: Step, context: AccessContext) => Promise<unknown>): ToolHandler => {
  onlyKnown('a tool', given, TOOL_KEYS);
  const { name, namespace, readWrite, requires, resolve, args = {}, outcome, output = null, throwsText, nested: steps = [] } = given;
  if (outcome !== undefined && !OUTCOMES.includes(outcome as string)) throw new UnknownToRunner(`no outcome is called ${String(outcome)}`);
  const declared = requires as CapabilityRequirement;
  return {
    definition: {
      name: name as string,
      description: 'A tool of the case.',
      namespace: namespace as string,
      source: 'native',
      readWrite: readWrite as 'read' | 'write',
      inputSchema: { type: 'object' },
      requiredCapability: declared,
    },
    parseArguments: (raw) => parsed(args as Record<string, string>, raw),
    ...(resolve === undefined || resolve === null
      ? {}
      : { resolveRequirement: (context: AccessContext, call: ToolCall) => resolved(resolve, declared, context, call) }),
    invoke: async (context, call) => {
      for (const step of steps as Step[]) await nested(step, context);
      if (outcome === 'throws') throw new Error((throwsText as string | undefined) ?? 'the tool fell');
      if (outcome === 'garbage') return 'no result' as unknown as ToolResult;
      return {
        status: 'succeeded',
        callId: outcome === 'other-call' ? `${call.id}-other` : call.id,
        tool: outcome === 'other-tool' ? `${call.tool}.other` : call.tool,
        completedAt: context.now,
        output: output as Json,
      };
    },
  };
};

const ARGUMENT: Readonly<Record<string, z.ZodType>> = { path: Path, string: z.string(), address: Address, any: z.unknown() };

const parsed = (args: Readonly<Record<string, string>>, raw: JsonObj): JsonObj => {
  // Arguments beyond the declared ones are neither refused nor read here; a requirement may still be made of them.
  const read: Record<string, Json> = { ...raw };
  for (const [name, written] of Object.entries(args)) {
    const optional = written.endsWith('?');
    const schema = ARGUMENT[optional ? written.slice(0, -1) : written];
    if (schema === undefined) throw new UnknownToRunner(`no argument is a ${written}`);
    if (raw[name] === undefined) {
      if (!optional) throw new Error(`${name} is missing`);
      continue;
    }
    read[name] = schema.parse(raw[name]) as Json;
  }
  return read;
};

const resolved = (
  resolve: unknown,
  declared: CapabilityRequirement,
  context: AccessContext,
  { arguments: given }: ToolCall,
): CapabilityRequirement => {
  if (resolve === 'throws') throw new Error('the resolver fell');
  if (typeof resolve !== 'object' || resolve === null) throw new UnknownToRunner('a requirement resolves in no such way');
  onlyKnown('a resolver', resolve, RESOLVE_KEYS);
  const { path, namespace, action, owner } = resolve as Bag;
  const named = owner === '$owner' ? (given['owner'] ?? context.owner) : (owner ?? context.owner);
  return {
    resource: {
      namespace: (namespace as string | undefined) ?? declared.resource.namespace,
      path: (path === '$path' ? given['path'] : (path ?? declared.resource.path)) as string[],
      owner: named as Address,
    },
    action: (action as string | undefined) ?? declared.action,
  };
};
