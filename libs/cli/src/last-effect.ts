import { type SharedOS, describeClientError } from '@sharedos/client';
import { type AuditEvent, type StopTarget, instantOf, timestampOf } from '@sharedos/contracts';

/** The last thing that was done before a stop, as far as the records have come. */
export type LastEffect =
  | { readonly status: 'found'; readonly record: AuditEvent }
  | { readonly status: 'none' }
  | { readonly status: 'unknown'; readonly why: string };

const MINUTE_MS = 60_000;
/** How far back is looked, nearest first: the records are read forwards, and the last of them is wanted. */
const WINDOWS_MS = [MINUTE_MS, 60 * MINUTE_MS, 24 * 60 * MINUTE_MS, 90 * 24 * 60 * MINUTE_MS];
const PAGE = 500;

/** @param stoppedAt When it was stopped; now when absent. */
export const lastEffectBefore = async ({ records }: SharedOS, target: StopTarget, stoppedAt: string | undefined): Promise<LastEffect> => {
  const until = instantOf(stoppedAt ?? '') ?? Date.now();
  for (const window of WINDOWS_MS) {
    let last: AuditEvent | undefined;
    for (let after = 0; ;) {
      const page = await records.query({
        type: 'tool.invoked',
        outcome: 'succeeded',
        since: timestampOf(until - window),
        until: timestampOf(until + 1),
        after,
        limit: PAGE,
        ...(target.kind === 'agent' ? { actor: target.agent } : {}),
      });
      if (!page.ok) return { status: 'unknown', why: describeClientError(page.error) };
      last = page.value.records.at(-1)?.event ?? last;
      if (page.value.next === undefined) break;
      after = page.value.next;
    }
    if (last !== undefined) return { status: 'found', record: last };
  }
  return { status: 'none' };
};
