import { z } from 'zod';

/** Settings of the messaging-router beside those of every service. */
export const routerSettings = {
  SHAREDOS_DEADLINE_MS: z.coerce
    .number()
    .int()
    .min(50)
    .max(60_000)
    .default(5_000)
    .meta({ description: 'Longest wait for an answer of the authorizer' }),
};
