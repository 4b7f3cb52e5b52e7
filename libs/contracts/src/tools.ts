import { z } from 'zod';
import { bounded } from './bounded.ts';
import { ProtocolError } from './errors.ts';
import { CapabilityRequirement } from './grants.ts';
import { Json, JsonObj } from './json.ts';
import { Hash, Id, ToolName, Version } from './scalars.ts';
import { Ts } from './time.ts';

const Description = bounded(z.string(), 1, 8192);

/** A tool as registered. `requiredCapability` is the discovery ceiling, not what a call needs. @see spec/contracts.md §4 */
export const ToolDefinition = z
  .strictObject({
    name: ToolName,
    description: Description,
    namespace: Id,
    source: Id,
    readWrite: z.enum(['read', 'write']),
    inputSchema: JsonObj,
    outputSchema: JsonObj.optional(),
    requiredCapability: CapabilityRequirement,
    annotations: z
      .strictObject({ readOnly: z.boolean().optional(), destructive: z.boolean().optional(), idempotent: z.boolean().optional() })
      .optional(),
    metadata: JsonObj.optional(),
  })
  .refine((tool) => !(tool.readWrite === 'read' && tool.annotations?.destructive === true), 'a read tool cannot be destructive')
  .refine((tool) => !(tool.readWrite === 'write' && tool.annotations?.readOnly === true), 'a write tool cannot be read-only');
export type ToolDefinition = z.infer<typeof ToolDefinition>;

/** `tool` is wider than `ToolName` on purpose: a guessed name reaches the kernel and is recorded. */
export const ToolCall = z.strictObject({ id: Id, tool: Id, arguments: JsonObj, traceId: Id, requestedAt: Ts });
export type ToolCall = z.infer<typeof ToolCall>;

const answered = { callId: Id, tool: Id, completedAt: Ts, metadata: JsonObj.optional() };

export const ToolResult = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('succeeded'), ...answered, output: Json }),
  z.strictObject({ status: z.literal('denied'), ...answered, error: ProtocolError }),
  z.strictObject({ status: z.literal('failed'), ...answered, error: ProtocolError }),
]);
export type ToolResult = z.infer<typeof ToolResult>;

/** All that a model or harness may see of a tool. */
export const PublishedTool = z.strictObject({
  name: ToolName,
  description: Description,
  inputSchema: JsonObj,
  outputSchema: JsonObj.optional(),
  annotations: z
    .strictObject({
      readOnlyHint: z.boolean().optional(),
      destructiveHint: z.boolean().optional(),
      idempotentHint: z.boolean().optional(),
      openWorldHint: z.boolean().optional(),
    })
    .optional(),
  metadata: z.strictObject({ namespace: Id.optional(), source: Id.optional() }).optional(),
});
export type PublishedTool = z.infer<typeof PublishedTool>;

export const ToolCatalog = z.strictObject({
  version: Version,
  executionId: Id,
  catalogHash: Hash,
  tools: bounded(z.array(PublishedTool), 0, 512),
});
export type ToolCatalog = z.infer<typeof ToolCatalog>;
