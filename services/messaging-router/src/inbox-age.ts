import type { StoredMessage } from '@sharedos/bus';
import { type Instant, instantOf } from '@sharedos/contracts';

export const EXPIRES_HEADER = 'sharedos-expires-at';

/** What nobody fetched for so long is not kept for ever: an inbox holds a bounded number of messages. */
const KEPT_MS = 30 * 86_400_000;

/** Whether the time of a message that waits in an inbox is over, by its sender's word or by its age. */
export const isOver = ({ header, storedAt }: Pick<StoredMessage, 'header' | 'storedAt'>, now: Instant): boolean => {
  const stated = header(EXPIRES_HEADER);
  const expiresAt = stated === undefined ? undefined : instantOf(stated);
  return now >= storedAt + KEPT_MS || (expiresAt !== undefined && now >= expiresAt);
};
