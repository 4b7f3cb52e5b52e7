import type { Reply } from '@sharedos/contracts';
import { measurements } from '@sharedos/telemetry';

/** Refusals that say that somebody reached a limit, whichever service says so. */
export const LIMIT_CODES: ReadonlySet<string> = new Set([
  'service_overloaded',
  'grant_limit_exceeded',
  'recipient_rate_limited',
  'message_hop_limit',
  'inbox_full',
  'ledger_full',
  'turn_queue_full',
  'turns_queued_limit_exceeded',
  'request_rate_exceeded',
]);

/** Counts one answer. @param ms From the request to it. */
export const countReply = (verb: string, namespaceId: string, reply: Reply<unknown>, ms: number): void => {
  const code = reply.ok ? 'ok' : reply.error.code;
  measurements.count('requests', verb, code);
  measurements.time('requestSeconds', ms / 1_000, verb);
  if (LIMIT_CODES.has(code)) measurements.count('limitsHit', namespaceId, code);
};
