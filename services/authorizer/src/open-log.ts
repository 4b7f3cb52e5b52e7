import type { Bus } from '@sharedos/bus';
import type { Result, Unavailable } from '@sharedos/contracts';
import { type EventStore, eventStoreDbEventStore, jetStreamEventStore } from '@sharedos/event-store';
import type { z } from 'zod';
import type { authorizerSettings } from './config.ts';

type LogSettings = Pick<
  z.infer<z.ZodObject<typeof authorizerSettings>>,
  'SHAREDOS_EVENT_STORE' | 'SHAREDOS_EVENTSTORE_URL' | 'SHAREDOS_EVENTSTORE_PREFIX' | 'SHAREDOS_DEADLINE_MS'
>;

/**
 * Opens the log that the settings name.
 *
 * @throws Error when the log is to be on EventStoreDB and no server is named.
 */
export const openLog = (
  settings: LogSettings,
  bus: Bus,
  onDefect: (defect: unknown, where: string) => void,
): Promise<Result<EventStore, Unavailable>> => {
  if (settings.SHAREDOS_EVENT_STORE === 'jetstream') return jetStreamEventStore({ bus, onDefect });
  const { SHAREDOS_EVENTSTORE_URL: connectionString, SHAREDOS_EVENTSTORE_PREFIX: prefix, SHAREDOS_DEADLINE_MS: timeoutMs } = settings;
  if (connectionString === undefined) throw new Error('SHAREDOS_EVENTSTORE_URL is missing, and SHAREDOS_EVENT_STORE asks for it');
  return eventStoreDbEventStore({ connectionString, prefix, timeoutMs, onDefect });
};
