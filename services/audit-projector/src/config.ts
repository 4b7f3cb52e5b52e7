import { askingSettings } from '@sharedos/bus';
import { Address } from '@sharedos/contracts';
import { z } from 'zod';

const Roots = z.record(z.string(), z.array(Address));

/** Root principals of each namespace, as JSON `{namespace: [principal]}`. */
export const rootsSetting = z
  .string()
  .default('{}')
  .transform((text, context) => {
    try {
      return Roots.parse(JSON.parse(text));
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON of the form {"namespace": [{"kind":"human","userId":"alice"}]}' });
      return z.NEVER;
    }
  });

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
