import { backoffMs, pause } from '@sharedos/bus';
import {
  type Address,
  type AuditOutcome,
  type AuditRecord,
  type AuditType,
  REPLAY_WAIT_MS_MAX,
  type RecordsPage,
  RecordsReplay,
  RecordsReplayReply,
  type Result,
  ok,
} from '@sharedos/contracts';
import { type ClientError, mayChange } from './client-error.ts';
import { type Session, ask } from './session.ts';

export interface ReplayOptions {
  /** Only what comes after this place; 0 or absent begins with the first record there is. */
  readonly after?: number;
  /** Go on with what is recorded from now on, until `signal`. Absent: end where the records end, once a head has been signed on the last. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal;
  /** In whose name: the root principal whose grant to read is used. */
  readonly authority?: Address;
}

export interface AuditOptions extends ReplayOptions {
  readonly types?: readonly AuditType[];
  readonly outcomes?: readonly AuditOutcome[];
}

/** What a replay hands out: a record, or word of records that are no longer held. */
export type AuditItem =
  | ({ readonly kind: 'record' } & AuditRecord)
  | { readonly kind: 'missed'; readonly after: number; readonly upTo: number };

const LONGEST_PAUSE_MS = 5_000;

/**
 * The namespace's records page by page, complete and in order, each with its link of the proof. Goes on over lost connections and
 * restarts where it was. A page is asked for when the one before has been taken: a slow reader holds one page and no more.
 *
 * Ends after the first answer that no waiting would change, which it yields.
 */
export async function* replayPages(session: Session, options: ReplayOptions): AsyncGenerator<Result<RecordsPage, ClientError>> {
  const { follow = false, signal, authority } = options;
  let after = options.after ?? 0;
  let headsAfter = 0;
  let sealedUpTo = after;
  let sessionOfReader: string | undefined;
  for (let failures = 0; signal?.aborted !== true;) {
    const asked: RecordsReplay = {
      after,
      headsAfter,
      // The answer has to arrive within the deadline of the request, which begins with the waiting.
      ...(follow || sealedUpTo < after ? { waitMs: Math.min(REPLAY_WAIT_MS_MAX, Math.floor(session.requestTimeoutMs / 2)) } : {}),
      ...(sessionOfReader === undefined ? {} : { session: sessionOfReader }),
      ...(authority === undefined ? {} : { authority }),
    };
    const page = await ask(session, 'records.replay', RecordsReplay, asked, RecordsReplayReply);
    if (!page.ok) {
      if (!follow || !mayChange(page.error)) return yield page;
      failures += 1;
      await pause(backoffMs(failures, LONGEST_PAUSE_MS), signal);
      continue;
    }
    failures = 0;
    sessionOfReader = page.value.session;
    const isEmpty = page.value.records.length === 0 && page.value.heads.length === 0;
    if (!isEmpty) yield page;
    else if (!follow) return;
    after = page.value.after;
    headsAfter = page.value.headsAfter;
    sealedUpTo = page.value.heads.at(-1)?.head.sequence ?? sealedUpTo;
    if (!follow && !isEmpty && page.value.records.length === 0 && sealedUpTo >= after) return;
  }
}

/** Records alone, those asked for; complete between two of them unless it says `missed`. */
export async function* replayAudit(session: Session, options: AuditOptions): AsyncGenerator<Result<AuditItem, ClientError>> {
  const { types, outcomes, ...replay } = options;
  let after = options.after ?? 0;
  for await (const page of replayPages(session, replay)) {
    if (!page.ok) return yield page;
    const { records, heldAfter } = page.value;
    if (heldAfter > after) yield ok({ kind: 'missed', after, upTo: heldAfter });
    for (const { sequence, event } of records) {
      const isAskedFor = (types?.includes(event.type) ?? true) && (outcomes?.includes(event.outcome) ?? true);
      if (isAskedFor) yield ok({ kind: 'record', sequence, event });
    }
    after = page.value.after;
  }
}
