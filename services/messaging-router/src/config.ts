import { askingSettings } from '@sharedos/bus';
import { z } from 'zod';

/** Settings of the messaging-router beside those of every service. */
export const routerSettings = {
  ...askingSettings,
  SHAREDOS_SEND_LEASE_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(600_000)
    .default(60_000)
    .meta({ description: 'How long nothing is heard of a send before its router is taken for gone, and another brings the message' }),
};
