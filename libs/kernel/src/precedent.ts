import {
  type AutoDecided,
  type Capability,
  type CapabilityConstraints,
  type CapabilityRequest,
  type Instant,
  type Result,
  type Ts,
  err,
  instantOf,
  ok,
  sameAddress,
} from '@sharedos/contracts';
import { tightestConstraints } from './constraints.ts';
import { capabilityIsWithin } from './delegation.ts';
import { type PrecedentKey, precedentDigest, precedentKeyOf } from './precedent-key.ts';

/** How one escalation was answered. A refusal stores no capabilities, so it offers no width. */
export type Precedent = {
  readonly requestId: string;
  readonly key: PrecedentKey;
  readonly decidedAt: Ts;
} & (
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'approved'; readonly capabilities: readonly Capability[]; readonly constraints: CapabilityConstraints }
);

/** What a matcher suggests. It has no score on purpose: how alike two questions look confers nothing. */
export interface PrecedentProposal {
  /** Name and version of the matcher, by which all that it decided can be found and revoked at once. */
  readonly matcher: string;
  readonly citedRequestIds: readonly string[];
  readonly answer: { readonly allowed: false } | { readonly allowed: true; readonly capabilities: readonly Capability[] };
}

/** What the trusted store of precedents answered for this request's namespace. */
export interface PrecedentLookup {
  /** Exactly the rows that were cited. */
  readonly cited: readonly Precedent[];
  /** The newest row of this request's key and of each cited row's key, as far as there is one. A tie is the refusal. */
  readonly newest: readonly Precedent[];
}

export interface PrecedentQuestion {
  /** The ask, with the capabilities as they are after the host's ceilings. */
  readonly request: CapabilityRequest;
  readonly proposal: PrecedentProposal;
  /** Absent when the store could not be asked. */
  readonly lookup: PrecedentLookup | undefined;
  readonly now: Instant;
  /** A row older than this, in milliseconds, counts as missing. */
  readonly ageMaxMs: number;
}

export type PrecedentRefusal =
  | 'auto_decision_unmarked'
  | 'no_precedent_cited'
  | 'empty_proposed_capability'
  | 'precedent_unavailable'
  | 'precedent_not_this_owner'
  | 'allow_cites_refusal'
  | 'precedent_not_this_requester'
  | 'wider_than_precedent'
  | 'wider_than_request'
  | 'envelope_unsatisfiable';

interface AdmittedCommon {
  readonly citedRequestIds: readonly string[];
  readonly match: AutoDecided['match'];
  /** For the grant that is issued, and on the record that is written before it. */
  readonly metadata: { readonly autoDecided: AutoDecided };
}

/** An answer that may stand in for a human's. It is no decision on authority, and no port takes it as one. */
export type AdmittedPrecedent =
  | (AdmittedCommon & { readonly allowed: false })
  | (AdmittedCommon & {
      readonly allowed: true;
      /** The match is fuzzy: told in audit as `auto_allow_narrowed`. */
      readonly narrowed: boolean;
      readonly capabilities: readonly Capability[];
      readonly constraints: CapabilityConstraints;
    });

/**
 * Whether an ask may be closed without troubling a person. A refusal leaves no trace and the queue of humans as it was. What is
 * admitted is written to audit first and issued then.
 *
 * A look-alike can shrink or refuse, nothing more; no cited precedent may be exceeded; the tightest limits among them apply; and
 * every such answer is labelled. Where the rule leaves room, this takes the narrower way: an allow is never wider than the ask,
 * an exact question that was once answered narrower is asked of a human again, and an answer that was overtaken is not leaned on.
 *
 * @see spec/escalation.md §7, §8
 */
export const admitPrecedent = (question: PrecedentQuestion): Result<AdmittedPrecedent, PrecedentRefusal> => {
  const { request, proposal, lookup } = question;
  const { matcher, answer } = proposal;
  const citedRequestIds = [...new Set(proposal.citedRequestIds)];
  if (matcher.trim() === '') return err('auto_decision_unmarked');
  if (citedRequestIds.length === 0) return err('no_precedent_cited');
  if (answer.allowed && answer.capabilities.length === 0) return err('empty_proposed_capability');
  const rows = lookup === undefined ? undefined : citedRows(citedRequestIds, lookup.cited, question);
  if (lookup === undefined || rows === undefined) return err('precedent_unavailable');
  if (answer.allowed && !isWhole(rows, lookup.newest)) return err('precedent_unavailable');
  if (!rows.every(({ key }) => key.namespaceId === request.namespaceId && sameAddress(key.owner, request.owner)))
    return err('precedent_not_this_owner');

  const asked = precedentDigest(precedentKeyOf(request));
  const match = rows.every(({ key }) => precedentDigest(key) === asked) ? 'exact' : 'fuzzy';
  const common = { citedRequestIds, match, metadata: { autoDecided: { matcher, citedRequestIds, match } } } as const;
  if (!answer.allowed) return ok({ allowed: false, ...common });

  const width = widthOf(answer.capabilities, rows, lookup.newest, request, asked);
  return width.ok
    ? ok({ allowed: true, narrowed: match === 'fuzzy', capabilities: answer.capabilities, constraints: width.value, ...common })
    : width;
};

/** The rows in the order they were cited, or nothing when they are not exactly those, each once and young enough. */
const citedRows = (
  ids: readonly string[],
  found: readonly Precedent[],
  { now, ageMaxMs }: PrecedentQuestion,
): readonly Precedent[] | undefined => {
  const byId = new Map(found.map((row) => [row.requestId, row]));
  if (found.length !== ids.length || byId.size !== ids.length) return undefined;
  const rows = ids.map((id) => byId.get(id));
  // Written so that a time that cannot be read counts as too old.
  return rows.every((row) => row !== undefined && now - (instantOf(row.decidedAt) ?? NaN) <= ageMaxMs) ? (rows as Precedent[]) : undefined;
};

/** Whether the newest answer to each cited question is known, and every newest approval was itself cited. */
const isWhole = (rows: readonly Precedent[], newest: readonly Precedent[]): boolean => {
  const answered = new Set(newest.map(({ key }) => precedentDigest(key)));
  return rows.every(({ key }) => answered.has(precedentDigest(key))) && !isOvertaken(rows, newest, 'approved');
};

/** Whether the newest answer to one of the questions at issue is of this outcome and was not cited. */
const isOvertaken = (rows: readonly Precedent[], newest: readonly Precedent[], outcome: Precedent['outcome']): boolean =>
  newest.some((row) => row.outcome === outcome && !rows.some(({ requestId }) => requestId === row.requestId));

/** What an allow may carry: nothing wider than any cited approval or than the ask, within the tightest of their limits. */
const widthOf = (
  proposed: readonly Capability[],
  rows: readonly Precedent[],
  newest: readonly Precedent[],
  request: CapabilityRequest,
  asked: string,
): Result<CapabilityConstraints, PrecedentRefusal> => {
  const approvals: Extract<Precedent, { outcome: 'approved' }>[] = [];
  for (const row of rows) {
    if (row.outcome === 'refused') return err('allow_cites_refusal');
    if (!sameAddress(row.key.requester, request.requester)) return err('precedent_not_this_requester');
    approvals.push(row);
  }
  if (isOvertaken(rows, newest, 'refused')) return err('allow_cites_refusal');
  for (const { key, capabilities } of approvals) {
    if (!allWithin(proposed, capabilities, request)) return err('wider_than_precedent');
    // The very same question, answered narrower: granting that again would have it asked again, and so on without end.
    if (precedentDigest(key) === asked && !allWithin(request.capabilities, capabilities, request)) return err('wider_than_precedent');
  }
  if (!allWithin(proposed, request.capabilities, request)) return err('wider_than_request');
  const tightest = tightestConstraints(approvals.map(({ constraints }) => constraints));
  return tightest === undefined ? err('envelope_unsatisfiable') : ok({ ...tightest, delegationDepth: 0 });
};

const allWithin = (inner: readonly Capability[], outer: readonly Capability[], { owner }: CapabilityRequest): boolean =>
  inner.every((capability) => outer.some((other) => capabilityIsWithin(capability, other, { owner })));
