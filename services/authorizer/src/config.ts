import { z } from 'zod';

/** Settings of the authorizer beside those of every service. */
export const authorizerSettings = {
  SHAREDOS_REDIS_URL: z.string().min(1).meta({ description: 'Address of the counters, with credentials' }),
  SHAREDOS_TOKEN_SECRET: z.string().min(32).meta({ description: 'Secret shared by all authorizers; signs open turns' }),
  SHAREDOS_EVENT_STORE: z
    .enum(['jetstream', 'eventstoredb'])
    .default('jetstream')
    .meta({ description: 'What the log of authority runs on; all authorizers alike, and the log does not move by itself' }),
  SHAREDOS_EVENTSTORE_URL: z.string().min(1).optional().meta({ description: 'Connection string of EventStoreDB, with credentials' }),
  SHAREDOS_EVENTSTORE_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9._-]{0,64}$/)
    .default('')
    .meta({ description: 'Put before the name of each stream in EventStoreDB, where several logs share a database' }),
  SHAREDOS_GRACE_FOR_TURNS_MS: z.coerce
    .number()
    .int()
    .min(0)
    .max(600_000)
    .default(30_000)
    .meta({ description: 'How long after its time-out a turn may still be asked about' }),
  SHAREDOS_DEADLINE_MS: z.coerce
    .number()
    .int()
    .min(50)
    .max(60_000)
    .default(4_000)
    .meta({ description: 'Longest wait for the log before authority is unavailable' }),
};
