import { z } from 'zod';
import { bounded } from './bounded.ts';
import { JsonObj } from './json.ts';
import { Id } from './scalars.ts';

export const ProtocolError = z.strictObject({
  code: Id,
  message: bounded(z.string(), 1, 4096),
  retryable: z.boolean().optional(),
  details: JsonObj.optional(),
});
export type ProtocolError = z.infer<typeof ProtocolError>;
