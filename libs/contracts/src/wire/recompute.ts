import { z } from 'zod';
import { AuditEvent } from '../audit.ts';
import { bounded } from '../bounded.ts';
import { CapabilityGrant } from '../grants.ts';
import { Address } from '../principals.ts';
import { Hash, Id, NameId } from '../scalars.ts';
import { Ts } from '../time.ts';
import { GrantTerms } from './grant.ts';
import { AuditRecord, RECORDS_PAGE_MAX, inNameOf } from './records.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/**
 * One event of the log, supposed: a grant revoked before anything was decided by it, or one more root grant that was there from the
 * beginning. What was recorded is then decided as it would have been.
 */
export const Supposition = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('revoke'), grantId: NameId }),
  z.strictObject({ kind: z.literal('issue'), issuer: Address, grant: GrantTerms }),
]);
export type Supposition = z.infer<typeof Supposition>;

/** A decision by what can be compared of it. */
export const DecisionMade = z.strictObject({
  outcome: z.enum(['allowed', 'denied']),
  reason: Id.optional(),
  grantId: Id.optional(),
  authorityHash: Hash.optional(),
});
export type DecisionMade = z.infer<typeof DecisionMade>;

/** Why a record cannot be computed again from the log. None of them allowed anything, but the first. */
export const NoBasis = z.enum([
  /** It does not say when its turn was admitted, or at which revision: it was written by a release before this one. */
  'not_stated',
  /** It was made where authority, or the counters, could not be asked. */
  'outage',
  /** It is of another log than the one that stands here. */
  'another_log',
]);
export type NoBasis = z.infer<typeof NoBasis>;

const Recomputed = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('same') }),
  z.strictObject({ status: z.literal('differs'), computed: DecisionMade, fields: bounded(z.array(Id), 1, 8) }),
  z.strictObject({ status: z.literal('no_basis'), why: NoBasis }),
]);
export type Recomputed = z.infer<typeof Recomputed>;

/** Computes recorded decisions again, from the log as it was written from its beginning; for a service. One answer for each. */
export const AuthorityRecompute = wireMessage(
  'authority.recompute/1',
  z.strictObject({ decisions: bounded(z.array(AuditEvent), 1, RECORDS_PAGE_MAX), suppose: Supposition.optional() }),
);
export type AuthorityRecompute = z.infer<typeof AuthorityRecompute.schema>;
export const AuthorityRecomputeReply = replyMessage(
  'authority.recompute.reply/1',
  z.strictObject({ answers: bounded(z.array(Recomputed), 1, RECORDS_PAGE_MAX) }),
);

/** Grants shown of one decision, those that came nearest first. */
export const RETRACED_GRANTS_MAX = 64;

/** Why one recorded decision came out as it did, computed from the log alone. */
export const AuthorityRetrace = wireMessage('authority.retrace/1', z.strictObject({ decision: AuditEvent }));
export type AuthorityRetrace = z.infer<typeof AuthorityRetrace.schema>;

export const Retraced = z.strictObject({
  answer: Recomputed,
  /** Absent where there is no basis to compute it from. */
  from: z
    .strictObject({ revision: Revision, admittedAt: Ts, at: Ts, mode: z.enum(['execute', 'discover']), consume: z.boolean() })
    .optional(),
  computed: DecisionMade.optional(),
  /** Grants held then. */
  grantsResolved: z.int().min(0),
  /** As they stood then; without a `reason` the one that allowed, then those that failed the latest of the tests a grant goes through. */
  grants: bounded(z.array(z.strictObject({ grant: CapabilityGrant, reason: Id.optional() })), 0, RETRACED_GRANTS_MAX),
});
export type Retraced = z.infer<typeof Retraced>;
export const AuthorityRetraceReply = replyMessage('authority.retrace.reply/1', Retraced);

/** Who wrote a grant, and those it was derived from, into the log; for a service. */
export const AuthorityLineage = wireMessage('authority.lineage/1', z.strictObject({ grantId: NameId }));
export type AuthorityLineage = z.infer<typeof AuthorityLineage.schema>;

const Act = z.strictObject({
  /** Who asked for it, as the broker let them through. */
  principal: Address,
  at: Ts,
  revision: Revision,
  eventId: Id,
  /** Of the command that it follows from. */
  correlationId: Id,
});

export const Lineage = z.strictObject({
  /** The grant asked for, then what it was derived from, up to a root grant; none for a grant that the log does not know. */
  links: bounded(z.array(z.strictObject({ grant: CapabilityGrant, issued: Act, revoked: Act.optional() })), 0, 17),
});
export type Lineage = z.infer<typeof Lineage>;
export const AuthorityLineageReply = replyMessage('authority.lineage.reply/1', Lineage);

/**
 * Computes the recorded decisions of the caller's namespace again, some at a time, and says which differ. With `suppose`: which would
 * have come out otherwise. Needs the right to read the audit; `session` as for `records.replay`.
 */
export const RecordsRecompute = wireMessage(
  'records.recompute/1',
  z.strictObject({
    after: z.int().min(0),
    since: Ts.optional(),
    until: Ts.optional(),
    limit: z.int().min(1).max(RECORDS_PAGE_MAX).optional(),
    suppose: Supposition.optional(),
    session: bounded(z.string(), 1, 512).optional(),
    ...inNameOf,
  }),
);
export type RecordsRecompute = z.infer<typeof RecordsRecompute.schema>;

const Count = z.int().min(0);
export const Difference = z.strictObject({
  record: AuditRecord,
  computed: DecisionMade,
  fields: bounded(z.array(Id), 1, 8),
  /** Whether the turn it was decided in has not ended. */
  turnIsRunning: z.boolean(),
});
export type Difference = z.infer<typeof Difference>;

export const RecomputedPage = z.strictObject({
  decisions: Count,
  same: Count,
  noBasis: z.partialRecord(NoBasis, Count),
  /** All that differ of this page. */
  differing: bounded(z.array(Difference), 0, RECORDS_PAGE_MAX),
  /** Where the next page begins; absent when this is the last. */
  next: z.int().min(1).optional(),
  heldAfter: Count,
  session: bounded(z.string(), 1, 512),
});
export type RecomputedPage = z.infer<typeof RecomputedPage>;
export const RecordsRecomputeReply = replyMessage('records.recompute.reply/1', RecomputedPage);

/** One recorded decision, explained from the log. */
export const RecordsExplain = wireMessage('records.explain/1', z.strictObject({ id: Id, ...inNameOf }));
export type RecordsExplain = z.infer<typeof RecordsExplain.schema>;
export const ExplainedRecord = z.strictObject({ record: AuditRecord, retraced: Retraced });
export type ExplainedRecord = z.infer<typeof ExplainedRecord>;
export const RecordsExplainReply = replyMessage('records.explain.reply/1', ExplainedRecord);

/** Who is answerable for an operation: its records, the decision, the grant, its parents, and the commands that issued them. */
export const RecordsBlame = wireMessage('records.blame/1', z.strictObject({ operationId: Id, ...inNameOf }));
export type RecordsBlame = z.infer<typeof RecordsBlame.schema>;

export const BLAMED_MAX = 100;
export const BlamedOperation = z.strictObject({
  /** What is recorded of the operation, its decisions among them, in order. */
  records: bounded(z.array(AuditRecord), 0, BLAMED_MAX),
  /** Of each grant that a decision of it named. */
  grants: bounded(z.array(Lineage), 0, 16),
  /** The acts on those grants, as they are recorded. */
  acts: bounded(z.array(AuditRecord), 0, BLAMED_MAX),
});
export type BlamedOperation = z.infer<typeof BlamedOperation>;
export const RecordsBlameReply = replyMessage('records.blame.reply/1', BlamedOperation);
