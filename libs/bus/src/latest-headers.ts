import { type Address, type Result, type Unavailable, ok, parseSubject, unavailable } from '@sharedos/contracts';
import { nuid } from 'nats';
import type { Bus } from './bus.ts';
import { headerOf } from './headers.ts';
import { askJetStream, placeOf, refusalReason } from './stored-message.ts';
import { within } from './waiting.ts';

/** The last message on one subject, without its body. */
export interface LatestHeaders {
  readonly subject: string;
  /** Whom the subject names, where its kind names one. */
  readonly principal: Address | undefined;
  /** What follows the principal in the subject. */
  readonly rest: readonly string[];
  readonly storedAt: number;
  readonly header: (name: string) => string | undefined;
}

const SUBJECTS_MAX = 10_000;
const INACTIVE_NS = 5_000_000_000;

/**
 * For each subject that `filterSubject` covers, the headers of its last message: what a list needs, however large the bodies are.
 *
 * @returns At most `subjectsMax` subjects, 10 000 when absent, the ones least recently written to first; `unavailable` when the broker did not answer with all of them in time.
 */
export const latestHeaders = async (
  bus: Bus,
  stream: string,
  filterSubject: string,
  { timeoutMs, subjectsMax = SUBJECTS_MAX }: { readonly timeoutMs: number; readonly subjectsMax?: number },
): Promise<Result<readonly LatestHeaders[], Unavailable>> => {
  const name = `latest-${nuid.next()}`;
  const config = {
    name,
    deliver_policy: 'last_per_subject',
    filter_subject: filterSubject,
    headers_only: true,
    ack_policy: 'none',
    max_deliver: 1,
    replay_policy: 'instant',
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: INACTIVE_NS,
  };
  const created = await askJetStream<{ readonly num_pending: number }>(
    bus,
    `$JS.API.CONSUMER.CREATE.${stream}.${name}.${filterSubject}`,
    { stream_name: stream, config },
    timeoutMs,
  );
  if (!created.ok) return unavailable(refusalReason(created.error));
  const expected = Math.min(created.value.num_pending, subjectsMax);
  if (expected === 0) return ok([]);

  const found: LatestHeaders[] = [];
  const { promise, resolve } = Promise.withResolvers<true>();
  const inbox = `${bus.replies.inboxPrefix}.${nuid.next()}`;
  const subscription = bus.nats.subscribe(inbox, {
    callback: (error, message) => {
      const parsed = error === null ? parseSubject(message.subject) : undefined;
      const place = placeOf(message.reply);
      if (parsed === undefined || place === undefined) return;
      found.push({
        subject: message.subject,
        principal: parsed.principal,
        rest: parsed.rest,
        storedAt: place.storedAt,
        header: (header) => headerOf(message.headers, header),
      });
      if (found.length >= expected) resolve(true);
    },
  });
  bus.nats.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, JSON.stringify({ batch: expected, expires: timeoutMs * 1_000_000 }), {
    reply: inbox,
  });
  const complete = await within(promise, timeoutMs);
  subscription.unsubscribe();
  return complete === true ? ok(found) : unavailable(`${filterSubject} was not listed within ${timeoutMs} ms`);
};
