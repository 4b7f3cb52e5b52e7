import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { AuditEvent, AuditOutcome, AuditType } from '../audit.ts';
import { Address } from '../principals.ts';
import { Hash, Id, Path } from '../scalars.ts';
import { Ts } from '../time.ts';
import { SealedHead } from './seal.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Most records in one answer; it may hold fewer, where they are large. */
export const RECORDS_PAGE_MAX = 500;
/** Longest that a replay waits for something new, in milliseconds. */
export const REPLAY_WAIT_MS_MAX = 20_000;

/** In whose name the records are read: a root principal of the namespace that granted it, or the first one configured. */
export const inNameOf = { authority: Address.optional() };
const Page = { limit: z.int().min(1).max(RECORDS_PAGE_MAX).optional(), after: z.int().min(0).optional() };

/**
 * Audit records of the caller's namespace, in the order they were recorded. Every field given narrows. Needs a grant over
 * `sharedos` / `["audit"]` / `read` from a root principal of the namespace.
 */
export const RecordsQuery = wireMessage(
  'records.query/1',
  z.strictObject({
    traceId: Id.optional(),
    /** An execution id, a call id or a message id. */
    operationId: Id.optional(),
    turnId: Id.optional(),
    grantId: Id.optional(),
    actor: Address.optional(),
    /** That resource and all below it, whoever owns it. */
    resource: z.strictObject({ namespace: Id, path: Path }).optional(),
    /** A reason code, or the name of a command of the management plane. */
    reason: Id.optional(),
    type: AuditType.optional(),
    outcome: AuditOutcome.optional(),
    /** Records dated at this instant or later. */
    since: Ts.optional(),
    /** Records dated before this instant. */
    until: Ts.optional(),
    ...inNameOf,
    ...Page,
  }),
);
export type RecordsQuery = z.infer<typeof RecordsQuery.schema>;

/** `sequence` is the record's place among all records of all namespaces. */
export const AuditRecord = z.strictObject({ sequence: z.int().min(1), event: AuditEvent });
export type AuditRecord = z.infer<typeof AuditRecord>;

export const RecordsQueryReply = replyMessage(
  'records.query.reply/1',
  z.strictObject({ records: bounded(z.array(AuditRecord), 0, RECORDS_PAGE_MAX), next: z.int().min(1).optional(), upTo: z.int().min(0) }),
);

/**
 * All records after a place, in order, each with its link of the proof, and the signed heads that stand on them; answered as soon as
 * there is one of either, or empty after `waitMs`. Asking again with `after` of the answer goes on where it ended, over any interruption.
 *
 * `session` of an answer spares the next question its own decision: the right is decided again, and recorded, when it has ended.
 */
export const RecordsReplay = wireMessage(
  'records.replay/1',
  z.strictObject({
    after: z.int().min(0),
    /** Only heads after this place in the stream of heads, as the answer before named it; 0 when absent. */
    headsAfter: z.int().min(0).optional(),
    limit: Page.limit,
    waitMs: z.int().min(0).max(REPLAY_WAIT_MS_MAX).optional(),
    session: bounded(z.string(), 1, 512).optional(),
    ...inNameOf,
  }),
);
export type RecordsReplay = z.infer<typeof RecordsReplay.schema>;

/** A record as it is stored, a second copy of one included: `count` numbers the namespace's, `chain` is the proof's value after it. */
export const ChainedRecord = z.strictObject({ count: z.int().min(1), sequence: z.int().min(1), chain: Hash, event: AuditEvent });
export type ChainedRecord = z.infer<typeof ChainedRecord>;

export const RecordsPage = z.strictObject({
  records: bounded(z.array(ChainedRecord), 0, RECORDS_PAGE_MAX),
  heads: bounded(z.array(SealedHead), 0, RECORDS_PAGE_MAX),
  /** Where the next question goes on, for records and for heads. */
  after: z.int().min(0),
  headsAfter: z.int().min(0),
  /** The oldest record still held is the one after this place; a reader that was further back has missed some. */
  heldAfter: z.int().min(0),
  session: bounded(z.string(), 1, 512),
});
export type RecordsPage = z.infer<typeof RecordsPage>;
export const RecordsReplayReply = replyMessage('records.replay.reply/1', RecordsPage);

/** Counts over the records of a time. */
export const RecordsSummary = wireMessage('records.summary/1', z.strictObject({ since: Ts.optional(), until: Ts.optional(), ...inNameOf }));
export type RecordsSummary = z.infer<typeof RecordsSummary.schema>;

const Count = z.int().min(0);
export const SummaryOfRecords = z.strictObject({
  records: Count,
  /** Decisions. Outages ("we could not find out") are denials and no part of the rate of them. */
  decisions: z.strictObject({ allowed: Count, denied: Count, outages: Count }),
  /** How often each reason was given, the most frequent first. */
  reasons: bounded(
    z.array(z.strictObject({ reason: Id, type: AuditType, outcome: AuditOutcome, outage: z.boolean(), count: Count })),
    0,
    500,
  ),
  /**
   * Uses that decisions took of each bounded grant, and those that were given back, the most used first. `max` is what the log allows it in
   * all, of the most used where the log could be asked.
   */
  uses: bounded(z.array(z.strictObject({ grantId: Id, taken: Count, released: Count, max: z.int().min(1).optional() })), 0, 500),
  /** The newest signed head: whoever keeps it can tell later that nothing before it was lost or changed. */
  head: SealedHead.optional(),
  /** Where the read model stands. */
  upTo: z.int().min(0),
});
export type SummaryOfRecords = z.infer<typeof SummaryOfRecords>;
export const RecordsSummaryReply = replyMessage('records.summary.reply/1', SummaryOfRecords);

export const AuditRecordMessage = wireMessage('audit.record/1', AuditEvent);
