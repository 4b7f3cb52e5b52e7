import { NatsError } from 'nats';
import type { Bus } from './bus.ts';

/** What the broker says of itself to whoever connects. */
export interface BrokerFacts {
  readonly version: string;
  readonly jetstream: boolean;
  readonly payloadBytesMax: number;
}

export const brokerFacts = (bus: Bus): BrokerFacts => {
  const { version = '', jetstream = false, max_payload: payloadBytesMax = 0 } = bus.nats.info ?? {};
  return { version, jetstream, payloadBytesMax };
};

const REFUSED_MS = 3_000;

/** Whether the broker lets this user publish on a subject: tried with an empty message, so only where one does no harm. */
export const mayPublish = async (bus: Bus, natsSubject: string): Promise<boolean> => {
  try {
    await bus.nats.request(natsSubject, '', { timeout: REFUSED_MS });
    return true;
  } catch (error) {
    return !(error instanceof NatsError && error.isPermissionError());
  }
};
