import type { AccessContext, CapabilityGrant, Instant } from '@sharedos/contracts';
import { sameAddress } from '@sharedos/contracts';
import { type Asking, type Budget, askAncestor } from './asking.ts';
import { constraintEnvelopeViolation } from './constraints.ts';
import { capabilityIsWithin } from './delegation.ts';
import type { ParsedGrant } from './parsed-grant.ts';
import { isInsideWindow } from './window.ts';

/** Ancestors a presented grant may have. */
export const ANCESTORS_MAX = 16;

export type ChainInvalidCode =
  | 'chain_too_long'
  | 'chain_cycle'
  | 'namespace_mismatch'
  | 'issuer_not_parent_subject'
  | 'parent_inactive'
  | 'delegation_not_permitted'
  | 'delegation_depth_exceeded'
  | 'bounded_parent_not_delegable'
  | 'capability_widened'
  | 'constraints_widened';

export type ChainUnverifiedCode = 'resolver_unavailable' | 'resolver_failed' | 'parent_not_found';

/**
 * `chain`: ids of the ancestors accepted, nearest first. `budgets`: those of them that are bounded, where budgets are shared.
 * `grantId`: the grant at which the chain failed.
 */
export type ChainVerdict =
  | { readonly status: 'valid'; readonly chain: readonly string[]; readonly budgets?: readonly Budget[] }
  | { readonly status: 'invalid'; readonly code: ChainInvalidCode; readonly grantId: string; readonly chain: readonly string[] }
  | { readonly status: 'unverified'; readonly code: ChainUnverifiedCode; readonly grantId: string; readonly chain: readonly string[] };

export interface ChainFrame {
  readonly context: Pick<AccessContext, 'owner' | 'purpose'>;
  /** The instant the turn's authority was resolved with. */
  readonly admittedAt: Instant;
  /** The instant of the operation. */
  readonly now: Instant;
  /** Whether a bounded grant may be passed on, every use below it counting as one of its own. */
  readonly sharedBudgets?: boolean | undefined;
}

/**
 * Establishes that every ancestor of a grant still permits it. Ancestors come from the resolver alone, never from what was
 * presented; they are judged by the same split of instants as the grant itself.
 *
 * @see spec/authorization.md §9.2
 */
export function* validateChain(presented: ParsedGrant, frame: ChainFrame, ancestorsMax: number = ANCESTORS_MAX): Asking<ChainVerdict> {
  const chain: string[] = [];
  const budgets: Budget[] = [];
  let child = presented;
  for (;;) {
    const { id, namespaceId, parentGrantId } = child.grant;
    if (parentGrantId === undefined) return { status: 'valid', chain, ...(budgets.length === 0 ? {} : { budgets }) };
    const wanted = { namespaceId, grantId: parentGrantId };
    // Whether there is a resolver at all comes before the length. Once an ancestor was found there is one, and none is asked in vain.
    if (chain.length >= ancestorsMax && (chain.length > 0 || (yield* askAncestor(wanted)) !== 'missing_port'))
      return { status: 'invalid', code: 'chain_too_long', grantId: id, chain };
    const answer = yield* askAncestor(wanted);
    if (typeof answer === 'string') return { status: 'unverified', code: UNVERIFIED[answer], grantId: id, chain };
    const parent = answer.found;
    // A resolver that answers with another grant than asked for has not resolved anything.
    if (parent.grant.id !== parentGrantId) return { status: 'unverified', code: 'resolver_failed', grantId: id, chain };
    const code =
      parentGrantId === presented.grant.id || chain.includes(parentGrantId) ? 'chain_cycle' : linkViolation(child, parent, frame);
    if (code !== undefined) return { status: 'invalid', code, grantId: parentGrantId, chain };
    chain.push(parentGrantId);
    const { maxUses } = parent.grant.constraints;
    if (maxUses !== undefined) budgets.push({ grantId: parentGrantId, max: maxUses });
    child = parent;
  }
}

const UNVERIFIED = {
  missing_port: 'resolver_unavailable',
  failed: 'resolver_failed',
  not_found: 'parent_not_found',
} as const satisfies Record<string, ChainUnverifiedCode>;

const linkViolation = (
  child: ParsedGrant,
  parent: ParsedGrant,
  { context, admittedAt, now, sharedBudgets }: ChainFrame,
): ChainInvalidCode | undefined => {
  const inner = child.grant;
  const outer = parent.grant;
  if (outer.namespaceId !== inner.namespaceId) return 'namespace_mismatch';
  if (!sameAddress(outer.subject, inner.issuer)) return 'issuer_not_parent_subject';
  if (!isInsideWindow(parent.window, admittedAt, now) || !servesPurpose(outer, context.purpose)) return 'parent_inactive';
  const depth = outer.constraints.delegationDepth ?? 0;
  if (depth < 1) return 'delegation_not_permitted';
  if ((inner.constraints.delegationDepth ?? 0) > depth - 1) return 'delegation_depth_exceeded';
  if (outer.constraints.maxUses !== undefined && sharedBudgets !== true) return 'bounded_parent_not_delegable';
  if (!inner.capabilities.every((mine) => outer.capabilities.some((theirs) => capabilityIsWithin(mine, theirs, context))))
    return 'capability_widened';
  // A grant cannot act before it was issued, so a start left out is its issue. An end or purpose left out is a widening.
  const started = { ...inner.constraints, notBefore: inner.constraints.notBefore ?? inner.issuedAt };
  if (constraintEnvelopeViolation(started, outer.constraints) !== undefined) return 'constraints_widened';
  if (!(child.window.issuedAt >= parent.window.issuedAt)) return 'constraints_widened';
  return undefined;
};

/** Whether a grant serves a purpose: it names none, or this very one. */
export const servesPurpose = ({ constraints }: CapabilityGrant, purpose: string): boolean =>
  constraints.purposes === undefined || constraints.purposes.includes(purpose);

/** Every budget that a use of a grant counts in: its own, if it is bounded, and those of its chain. */
export const budgetsOfChain = (
  { id, constraints: { maxUses } }: CapabilityGrant,
  { budgets = [] }: Extract<ChainVerdict, { status: 'valid' }>,
): readonly Budget[] => [...(maxUses === undefined ? [] : [{ grantId: id, max: maxUses }]), ...budgets];
