import { askingSettings, rootsSetting } from '@sharedos/bus';
import { z } from 'zod';

/** Settings of the audit projector beside those of every service. */
export const projectorSettings = {
  ...askingSettings,
  SHAREDOS_ROOTS: rootsSetting.meta({ description: 'Root principals of each namespace; only what they grant opens the audit records' }),
  SHAREDOS_RECORDS_MAX: z.coerce
    .number()
    .int()
    .min(1)
    .max(10_000_000)
    .default(500_000)
    .meta({ description: 'Audit records held in memory for queries, the newest' }),
};
