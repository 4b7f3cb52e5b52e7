import { askingSettings, rootsSetting } from '@sharedos/bus';
import { z } from 'zod';
import { mcpSettings } from './mcp/mcp-settings.ts';
import { runtimeSettings } from './runtime-settings.ts';

const count = (max: number) => z.coerce.number().int().min(1).max(max);

/** Settings of the tool-executor beside those of every service. */
export const executorSettings = {
  ...askingSettings,
  SHAREDOS_FILES_ROOT: z.string().min(1).meta({ description: 'Folder under which the files of every namespace and owner lie' }),
  SHAREDOS_ROOTS: rootsSetting.meta({
    description: 'Root principals of each namespace; they administer its turns, and what they grant over sharedos.admin lets others',
  }),
  SHAREDOS_TRUSTED_HOSTS: rootsSetting
    .refine(
      (hosts) => Object.values(hosts).every((some) => some.every(({ kind }) => kind === 'service')),
      'must name service principals alone',
    )
    .meta({
      description:
        'Service principals of each namespace that may say under whose authority, as whom and for what a turn runs; nobody else may',
    }),
  SHAREDOS_TOOL_NAMESPACES: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    )
    .meta({
      description: 'Tool namespaces that may be on, separated by commas; all of them are until the namespace chooses; none when absent',
    }),
  SHAREDOS_TOOLS_FROM: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((place) => place.trim())
        .filter((place) => place !== ''),
    )
    .meta({ description: 'Folders (absolute) and installed packages with tools of your own, separated by commas; none when absent' }),
  ...mcpSettings,
  ...runtimeSettings,
  SHAREDOS_TURNS_AT_ONCE: count(10_000).default(64).meta({ description: 'Turns that one process runs at once' }),
  SHAREDOS_TURN_LEASE_MS: z.coerce
    .number()
    .int()
    .min(500)
    .max(600_000)
    .default(30_000)
    .meta({ description: 'How long a taken request may stay without a sign of life before another executor is offered it' }),
  SHAREDOS_MAX_STEPS: count(1_000).default(16).meta({ description: 'Steps of a turn that states no limit' }),
  SHAREDOS_MAX_TOOL_CALLS: count(10_000)
    .optional()
    .meta({ description: 'Tool calls of a turn that states no limit; its steps when absent' }),
  SHAREDOS_TURN_TIMEOUT_MS: count(600_000).default(120_000).meta({ description: 'Deadline of a turn that states none' }),
  SHAREDOS_DRAIN_GRACE_MS: z.coerce
    .number()
    .int()
    .min(0)
    .max(600_000)
    .default(0)
    .meta({ description: 'How long before its deadline a turn takes nothing new' }),
  SHAREDOS_HORIZON_MS: z.coerce
    .number()
    .int()
    .min(60_000)
    .default(7 * 86_400_000)
    .meta({ description: 'How long after requestedAt a request may be sent again' }),
  SHAREDOS_EXPIRE_EVERY_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(600_000)
    .meta({ description: 'How often turns are looked for whose answers need not be kept any longer' }),
};

/** How far a requester's clock may be ahead of ours. */
export const CLOCK_SKEW_MS = 30_000;
