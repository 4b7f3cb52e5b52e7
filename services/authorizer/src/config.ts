import { rootsSetting } from '@sharedos/bus';
import { z } from 'zod';
import { tellerSettings } from './escalations/open-teller.ts';

/** Settings of the authorizer beside those of every service. */
export const authorizerSettings = {
  ...tellerSettings,
  SHAREDOS_REDIS_URL: z.string().min(1).meta({ description: 'Address of the counters, with credentials' }),
  SHAREDOS_TOKEN_SECRET: z.string().min(32).meta({ description: 'Secret shared by all authorizers; signs open turns' }),
  SHAREDOS_ROOTS: rootsSetting.meta({
    description: 'Root principals of each namespace; they manage it, and what they grant over sharedos.admin lets others',
  }),
  SHAREDOS_RECORD_AGAIN_MS: z.coerce.number().int().min(0).max(86_400_000).default(600_000).meta({
    description:
      'Acts of this time before a start are recorded, and told, once more, in case whoever carried them out ended before it could',
  }),
  SHAREDOS_QUESTION_LASTS_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(31 * 86_400_000)
    .default(7 * 86_400_000)
    .meta({ description: 'How long a question that a turn ended on may be answered' }),
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
  SHAREDOS_SNAPSHOT_FOLDER: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Folder for a snapshot of the folded log, to start from; none is kept when absent' }),
  SHAREDOS_SNAPSHOT_INTERVAL_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(300_000)
    .meta({ description: 'How often a snapshot is kept, if anything changed' }),
};

/** The longest that a turn may be opened for, and how far apart clocks may be: what is needed to answer for it is remembered so long. */
export const LONGEST_TURN_MS = 1_300_000;
export const CLOCKS_APART_MS = 60_000;
