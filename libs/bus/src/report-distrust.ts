import { UsageDistrust, UsageDistrustReply, namespaceSubject } from '@sharedos/contracts';
import type { Bus } from './bus.ts';

const ANSWER_MS = 2_000;

/**
 * Tells the authorizers that a use handed out in this epoch had been spent before, so that the counters are closed and rebuilt.
 * Whether anybody heard it changes nothing for the caller: the use is not spent either way, and the next one to meet it says it again.
 */
export const reportDistrust = async (bus: Pick<Bus, 'request'>, namespaceId: string, epoch: string): Promise<void> => {
  await bus.request(namespaceSubject('usage.distrust', namespaceId), UsageDistrust, { epoch }, UsageDistrustReply, {
    timeoutMs: ANSWER_MS,
  });
};
