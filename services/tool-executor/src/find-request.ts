import { type StoredMessage, readSubject } from '@sharedos/bus';
import { type Result, type Unavailable, ok, principalSubject } from '@sharedos/contracts';
import { type AcceptedRequest, acceptRequest } from './accept-request.ts';
import type { Ports } from './ports.ts';
import type { Requester } from './turn-answers.ts';

const READ_MS = 3_000;

/** A request that nobody has acknowledged yet, waiting or being worked on. */
export interface QueuedRequest {
  readonly accepted: AcceptedRequest;
  readonly sequence: number;
  readonly storedAt: number;
}

/** The caller's requests in the queue, oldest first. The queue holds a bounded number of each principal. */
export const queuedRequests = async (
  { bus, clock, rules }: Ports,
  from: Requester,
): Promise<Result<readonly QueuedRequest[], Unavailable>> => {
  const stored = await readSubject(bus, 'TURNS', principalSubject('turn.request', from.namespaceId, from.requester), {
    timeoutMs: READ_MS,
  });
  if (!stored.ok) return stored;
  return ok(
    stored.value.flatMap((message: StoredMessage) => {
      const { sequence, storedAt } = message;
      const accepted = acceptRequest(message, from, clock(), rules);
      return accepted.ok && accepted.value.isFresh ? [{ accepted: accepted.value, sequence, storedAt }] : [];
    }),
  );
};
