import { askingSettings, rootsSetting } from '@sharedos/bus';
import { z } from 'zod';
import { parseSealKeys } from './seal-keys.ts';

const RECORDS_MAX = 10_000_000;

const sealKeysSetting = z.string().transform((text, context) => {
  const keys = parseSealKeys(text);
  if (keys !== undefined) return keys;
  context.addIssue({
    code: 'custom',
    message: 'must be of the form "key-1:MC4CAQ…,older-key:MCowBQ…"; make one with "sharedos audit keygen"',
  });
  return z.NEVER;
});

const RecordsMaxOf = z.record(z.string(), z.int().min(1).max(RECORDS_MAX));
const recordsMaxOfSetting = z
  .string()
  .default('{}')
  .transform((text, context) => {
    try {
      return new Map(Object.entries(RecordsMaxOf.parse(JSON.parse(text))));
    } catch {
      context.addIssue({ code: 'custom', message: `must be JSON of the form {"namespace": 100000}, of 1 to ${RECORDS_MAX} records each` });
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
    .max(RECORDS_MAX)
    .default(500_000)
    .meta({ description: 'Audit records of a namespace kept for queries, the newest; older ones stay in the stream' }),
  SHAREDOS_RECORDS_MAX_OF: recordsMaxOfSetting.meta({ description: 'The same for some namespaces, as JSON: {"demo": 100000}' }),
  SHAREDOS_RECORDS_DB: z
    .string()
    .default(':memory:')
    .meta({ description: 'File of the read model, one for each replica; it is folded again where there is none' }),
  SHAREDOS_SEAL_KEYS: sealKeysSetting.meta({
    description: 'Ed25519 keys of the audit proof, `id:key,…`; the first private one signs, and all replicas have the same',
  }),
  SHAREDOS_SEAL_INTERVAL_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(3_600_000)
    .default(5_000)
    .meta({ description: 'Longest that a record waits for a signed head' }),
};
