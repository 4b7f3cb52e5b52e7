import { z } from 'zod';
import { Json } from './json.ts';

const RECIPIENT_ID_POINTS_MAX = 256;

/** Stricter than an identifier elsewhere: a model writes it, so padding is refused and never trimmed away. */
const RecipientId = z
  .string()
  .refine((id) => id === id.trim(), 'must not have outer whitespace')
  // The slice bounds the count: a string of that many units holds more code points than are allowed.
  .refine(
    (id) => id !== '' && [...id.slice(0, 2 * RECIPIENT_ID_POINTS_MAX + 1)].length <= RECIPIENT_ID_POINTS_MAX,
    'must be 1..256 code points',
  )
  .meta({ minLength: 1, maxLength: RECIPIENT_ID_POINTS_MAX });

/** All that a model may write of a message it asks to be sent. @see spec/contracts.md §3 */
export const MessageRequestArguments = z.strictObject({
  recipient: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('human'), userId: RecipientId }),
    z.strictObject({ kind: z.literal('agent'), agentId: RecipientId }),
    z.strictObject({ kind: z.literal('group'), conversationId: RecipientId }),
    z.strictObject({ kind: z.literal('service'), serviceId: RecipientId }),
  ]),
  payload: Json,
});
export type MessageRequestArguments = z.infer<typeof MessageRequestArguments>;
