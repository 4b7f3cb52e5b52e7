import {
  RESULT_BYTES_MAX,
  ResourceResult,
  timestampOf,
  type AccessContext,
  type Instant,
  type Json,
  type JsonObj,
  type ResourceOperation,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
} from '@sharedos/contracts';
import { z } from 'zod';
import { isLargerThan } from './json-size.ts';
import { ContractError } from '@sharedos/kernel';
import type { ResourceProvider, ToolHandler } from '@sharedos/kernel';

/** One tool over a plane of resources: a row of the plane's table. */
export interface ResourceToolRow {
  readonly action: string;
  readonly description: string;
  readonly readWrite: 'read' | 'write';
  readonly annotations?: NonNullable<ToolDefinition['annotations']>;
  /** Closed object with `path`, which is the resource; the rest is the provider's input. */
  readonly arguments: z.ZodType;
  readonly output: z.ZodType;
}

/** A plane: its namespace (of tools and of resources alike) and its tools, each named `<namespace>.<key>`. */
export interface ResourcePlane {
  readonly namespace: string;
  readonly rows: Readonly<Record<string, ResourceToolRow>>;
}

/**
 * The tools of a plane over one provider. Requirement and operation come from the same parsed arguments: what is decided on is
 * what is done.
 *
 * @throws ContractError for a provider of another namespace: its grants are not the ones these tools ask for.
 * @see spec/tools.md §3
 */
export const resourceTools = (plane: ResourcePlane, provider: ResourceProvider, now: () => Instant = Date.now): readonly ToolHandler[] => {
  if (provider.namespace !== plane.namespace) {
    throw new ContractError(`the ${plane.namespace} tools need a provider of namespace ${plane.namespace}`);
  }
  return Object.entries(plane.rows).map(([verb, row]) => resourceTool(plane.namespace, `${plane.namespace}.${verb}`, row, provider, now));
};

const resourceTool = (
  namespace: string,
  name: string,
  row: ResourceToolRow,
  provider: ResourceProvider,
  now: () => Instant,
): ToolHandler => ({
  definition: {
    name,
    description: row.description,
    namespace,
    source: 'sharedos',
    readWrite: row.readWrite,
    inputSchema: jsonSchemaOf(row.arguments, 'input'),
    outputSchema: jsonSchemaOf(row.output, 'output'),
    requiredCapability: { resource: { namespace, path: [] }, action: row.action },
    ...(row.annotations === undefined ? {} : { annotations: row.annotations }),
  },

  parseArguments: (raw) => row.arguments.parse(raw) as JsonObj,

  resolveRequirement: (context, call) => ({
    resource: { namespace, path: [...pathOf(call)], owner: context.owner },
    action: row.action,
  }),

  invoke: async (context, call, cancel) => {
    const result = await provider.invoke(operationOf(namespace, row.action, context, call), cancel);
    return toToolResult(row, call, result, now);
  },
});

const pathOf = (call: ToolCall): readonly string[] => call.arguments['path'] as readonly string[];

const operationOf = (namespace: string, action: string, context: AccessContext, call: ToolCall): ResourceOperation => {
  const { path: _path, ...input } = call.arguments;
  return {
    operationId: call.id,
    context,
    resource: { namespace, path: [...pathOf(call)], owner: context.owner },
    action,
    ...(Object.keys(input).length === 0 ? {} : { input }),
  };
};

const toToolResult = (row: ResourceToolRow, call: ToolCall, given: unknown, now: () => Instant): ToolResult => {
  const parsed = ResourceResult.safeParse(given);
  if (!parsed.success || parsed.data.operationId !== call.id) {
    return failed(call, now, 'invalid_resource_result', 'the provider did not answer this operation with a resource result');
  }
  const { operationId: _operationId, ...answer } = parsed.data;
  // The published output schema is a promise to whoever calls, so a provider that breaks it has not answered.
  if (answer.status === 'succeeded' && !row.output.safeParse(answer.output).success) {
    return failed(call, now, 'invalid_resource_result', 'the provider answered with something else than the published output');
  }
  const result: ToolResult = { callId: call.id, tool: call.tool, ...answer };
  if (isLargerThan(result, RESULT_BYTES_MAX)) {
    return failed(call, now, 'invalid_tool_result', 'the result is too large; ask for less');
  }
  return result;
};

const failed = (call: ToolCall, now: () => Instant, code: string, message: string): ToolResult => ({
  callId: call.id,
  tool: call.tool,
  status: 'failed',
  error: { code, message, retryable: false },
  completedAt: timestampOf(now()),
});

/** The published schema. It is looser than the parser (refinements do not show in it); the parser decides. */
const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output'): JsonObj =>
  JSON.parse(JSON.stringify(z.toJSONSchema(schema, { target: 'draft-2020-12', io }))) as { readonly [key: string]: Json };
