import { z } from 'zod';
import { Id, Version } from './scalars.ts';

export const ApiErrorResponse = z.strictObject({
  error: z.strictObject({ code: z.string().min(1).max(128), message: z.string().min(1).max(8192), requestId: Id.optional() }),
});
export type ApiErrorResponse = z.infer<typeof ApiErrorResponse>;

export const Health = z.strictObject({ status: z.literal('ok'), protocolVersion: Version });
export type Health = z.infer<typeof Health>;
