import { z } from 'zod';
import { JsonObj } from './json.ts';
import { Id } from './scalars.ts';

export const ProtocolError = z.strictObject({
  code: Id,
  message: z.string().min(1).max(4096),
  retryable: z.boolean().optional(),
  details: JsonObj.optional(),
});
export type ProtocolError = z.infer<typeof ProtocolError>;
