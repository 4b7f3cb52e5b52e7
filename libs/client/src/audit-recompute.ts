import { backoffMs, pause } from '@sharedos/bus';
import {
  type Address,
  type BlamedOperation,
  type ExplainedRecord,
  RecordsBlame,
  RecordsBlameReply,
  RecordsExplain,
  RecordsExplainReply,
  type RecomputedPage,
  RecordsRecompute,
  RecordsRecomputeReply,
  type Result,
  type Supposition,
} from '@sharedos/contracts';
import { type ClientError, mayChange } from './client-error.ts';
import { type Session, ask } from './session.ts';

export interface RecomputeOptions {
  readonly since?: string;
  readonly until?: string;
  /** One event of the log supposed: what would have come out otherwise is then told instead of what differs. */
  readonly suppose?: Supposition;
  /** Decisions of one page; fewer where they are large. */
  readonly pageSize?: number;
  /** In whose name: the root principal whose grant to read is used. */
  readonly authority?: Address;
  readonly signal?: AbortSignal;
  /** Called while nothing can be told yet: an authorizer may have to fold the log from its beginning first. */
  readonly onWait?: (why: string) => void;
}

const LONGEST_PAUSE_MS = 2_000;
/** Questions in a row that come to nothing before this gives up: some minutes, in which a log of millions is folded. */
const TRIES_MAX = 60;

/**
 * Has every recorded decision of a time computed again from the log, page by page in order. Ends after the last page, or with the
 * error that no waiting changed.
 */
export async function* recomputePages(
  session: Session,
  { pageSize, onWait, signal, ...asked }: RecomputeOptions,
): AsyncGenerator<Result<RecomputedPage, ClientError>> {
  let after: number | undefined = 0;
  let sessionOfReader: string | undefined;
  for (let tries = 0; after !== undefined && signal?.aborted !== true;) {
    const body: RecordsRecompute = {
      ...asked,
      after,
      ...(pageSize === undefined ? {} : { limit: pageSize }),
      ...(sessionOfReader === undefined ? {} : { session: sessionOfReader }),
    };
    const page: Result<RecomputedPage, ClientError> = await ask(
      session,
      'records.recompute',
      RecordsRecompute,
      body,
      RecordsRecomputeReply,
    );
    if (!page.ok) {
      tries += 1;
      if (!mayChange(page.error) || tries >= TRIES_MAX) return yield page;
      onWait?.(page.error.kind === 'unavailable' ? page.error.reason : page.error.error.message);
      await pause(backoffMs(tries, LONGEST_PAUSE_MS), signal);
      continue;
    }
    tries = 0;
    yield page;
    sessionOfReader = page.value.session;
    after = page.value.next;
  }
}

/** Why one recorded decision came out as it did. */
export const explainRecord = (session: Session, body: RecordsExplain): Promise<Result<ExplainedRecord, ClientError>> =>
  ask(session, 'records.explain', RecordsExplain, body, RecordsExplainReply);

/** Who is answerable for an operation. */
export const blameOperation = (session: Session, body: RecordsBlame): Promise<Result<BlamedOperation, ClientError>> =>
  ask(session, 'records.blame', RecordsBlame, body, RecordsBlameReply);
