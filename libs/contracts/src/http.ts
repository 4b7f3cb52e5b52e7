import { z } from 'zod';
import { bounded } from './bounded.ts';
import { Id, Version } from './scalars.ts';

export const ApiErrorResponse = z.strictObject({
  error: z.strictObject({ code: bounded(z.string(), 1, 128), message: bounded(z.string(), 1, 8192), requestId: Id.optional() }),
});
export type ApiErrorResponse = z.infer<typeof ApiErrorResponse>;

export const Health = z.strictObject({ status: z.literal('ok'), protocolVersion: Version });
export type Health = z.infer<typeof Health>;
