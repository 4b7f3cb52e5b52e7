import { z } from 'zod';
import { AccessContext } from './access.ts';
import { ProtocolError } from './errors.ts';
import { ResourceRef } from './grants.ts';
import { Json, JsonObj } from './json.ts';
import { Id } from './scalars.ts';
import { Ts } from './time.ts';

/** One operation on a resource provider. The resource's owner is always filled in. @see spec/contracts.md §5 */
export const ResourceOperation = z.strictObject({
  operationId: Id,
  context: AccessContext,
  resource: ResourceRef,
  action: Id,
  input: Json.optional(),
  metadata: JsonObj.optional(),
});
export type ResourceOperation = z.infer<typeof ResourceOperation>;

/** The same as an embedded caller states it; its context comes from the trusted boundary, and a body that carries one is refused. */
export const ResourceInvocationRequest = ResourceOperation.omit({ context: true });
export type ResourceInvocationRequest = z.infer<typeof ResourceInvocationRequest>;
export const RemoteResourceOperation = ResourceInvocationRequest;
export type RemoteResourceOperation = ResourceInvocationRequest;

const answered = { operationId: Id, completedAt: Ts, metadata: JsonObj.optional() };

export const ResourceResult = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('succeeded'), ...answered, output: Json }),
  z.strictObject({ status: z.literal('denied'), ...answered, error: ProtocolError }),
  z.strictObject({ status: z.literal('failed'), ...answered, error: ProtocolError }),
]);
export type ResourceResult = z.infer<typeof ResourceResult>;
