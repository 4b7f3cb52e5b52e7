import { type StoredMessage, readSubject } from '@sharedos/bus';
import { type Address, type Result, type Unavailable, namespaceSubject, ok, parseSubject, principalSubject } from '@sharedos/contracts';
import { type AcceptedRequest, acceptRequest } from './accept-request.ts';
import type { Ports } from './ports.ts';

const READ_MS = 3_000;

/** A request that nobody has acknowledged yet, waiting or being worked on. */
export interface QueuedRequest {
  readonly accepted: AcceptedRequest;
  readonly sequence: number;
  readonly storedAt: number;
}

/** Whose turns are meant: those of one requester, or of everybody in the namespace. */
export interface Asked {
  readonly namespaceId: string;
  readonly requester?: Address | undefined;
}

/** Requests in the queue, oldest first. The queue holds a bounded number of each principal. */
export const queuedRequests = async (
  { bus, clock, rules }: Ports,
  { namespaceId, requester }: Asked,
): Promise<Result<readonly QueuedRequest[], Unavailable>> => {
  const filter =
    requester === undefined
      ? `${namespaceSubject('turn.request', namespaceId)}.*.*`
      : principalSubject('turn.request', namespaceId, requester);
  const stored = await readSubject(bus, 'TURNS', filter, { timeoutMs: READ_MS });
  if (!stored.ok) return stored;
  return ok(
    stored.value.flatMap((message: StoredMessage) => {
      const { sequence, storedAt, subject } = message;
      const sender = requester ?? parseSubject(subject)?.principal;
      if (sender === undefined) return [];
      const accepted = acceptRequest(message, { namespaceId, requester: sender }, clock(), rules);
      return accepted.ok && accepted.value.isFresh ? [{ accepted: accepted.value, sequence, storedAt }] : [];
    }),
  );
};
