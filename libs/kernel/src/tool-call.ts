import { type CapabilityRequirement, type ExactRequirement, type Instant, type ResourceRef, sameAddress } from '@sharedos/contracts';
import type { Asking } from './asking.ts';
import type { HeldAuthority } from './authority.ts';
import type { HostCeiling } from './ceiling.ts';
import { CompiledAuthority } from './compiled-authority.ts';
import { type Decided, type DecideOptions, decide } from './decide.ts';
import { type OwnerFrame, ownersAgree } from './matching.ts';
import { isAtOrBelow } from './paths.ts';

export interface ToolCallQuestion extends Pick<DecideOptions, 'checks' | 'ancestorsMax' | 'fitsCall'> {
  /** The tool's declared requirement: its discovery ceiling. */
  readonly ceiling: CapabilityRequirement;
  /** What exactly this call needs, or why its arguments gave no requirement. A function is asked only once the tool is known to be seen. */
  readonly exact: ExactRequirement | (() => ExactRequirement);
  readonly now: Instant;
  readonly hostCeiling?: HostCeiling | undefined;
}

/** A decision that is recorded as `authorization.checked`. */
export interface RecordedDecision {
  readonly request: CapabilityRequirement;
  readonly decided: Decided;
  /** The kind of check it was, on denials too; not whether a use was taken. */
  readonly consume: boolean;
  /** Whether it was about what may be discovered, which other rules judge than what may be done. */
  readonly mode?: 'discover';
}

/** The verdict on a tool call. `status` and `code` are what the caller hears; `cause` and `recorded` are for audit alone. */
export interface ToolCallDecided {
  readonly status: 'allowed' | 'denied' | 'failed';
  readonly code: string;
  readonly cause?: string;
  /** At most one: a discovery that allowed leaves no record. */
  readonly recorded: readonly RecordedDecision[];
  /** Of the exact requirement, once it is known to be inside the ceiling. */
  readonly resource?: ResourceRef;
  readonly action?: string;
  readonly grantId?: string;
  readonly usageTaken?: { readonly grantId: string };
}

/**
 * Decides one tool call. The order is what a caller can see: whoever may not discover the tool learns nothing about their
 * arguments, and nothing is spent before the exact requirement is known to be one this tool may have.
 *
 * @param authority Compiled where its turn makes many calls; the verdict is the same.
 * @see spec/turns.md §9, rows 6 to 11
 */
export function* decideToolCall(
  authority: HeldAuthority | CompiledAuthority,
  { ceiling, exact: asked, now, checks, ancestorsMax, fitsCall, hostCeiling }: ToolCallQuestion,
): Asking<ToolCallDecided> {
  const ports = { now, checks, ancestorsMax, fitsCall, ceiling: hostCeiling };
  const compiled = authority instanceof CompiledAuthority;
  const { context } = compiled ? authority.held : authority;
  const rule = (request: CapabilityRequirement, options: DecideOptions): Asking<Decided> =>
    compiled ? authority.decide(request, options) : decide(authority, request, options);

  const discovery = yield* rule(ceiling, { ...ports, consume: false, mode: 'discover' });
  if (!discovery.decision.allowed) {
    const recorded = [{ request: ceiling, decided: discovery, consume: false, mode: 'discover' as const }];
    return { status: 'denied', code: 'tool_unavailable', cause: discovery.decision.reasonCode, recorded };
  }
  const exact = typeof asked === 'function' ? asked() : asked;
  if ('failure' in exact) return { status: 'failed', code: exact.failure, recorded: [] };

  const { requirement } = exact;
  const { owner } = requirement.resource;
  if (owner !== undefined && !sameAddress(owner, context.owner)) {
    const decided = yield* rule(requirement, { ...ports, consume: false, mode: 'execute' });
    return { status: 'denied', code: decided.decision.reasonCode, recorded: [{ request: requirement, decided, consume: false }] };
  }
  if (!requirementIsWithinCeiling(requirement, ceiling, context))
    return { status: 'failed', code: 'invalid_tool_requirement', recorded: [] };

  const decided = yield* rule(requirement, { ...ports, consume: true, mode: 'execute' });
  const { allowed, reasonCode, matchedGrantId } = decided.decision;
  return {
    status: allowed ? 'allowed' : 'denied',
    code: reasonCode,
    recorded: [{ request: requirement, decided, consume: true }],
    resource: requirement.resource,
    action: requirement.action,
    ...(matchedGrantId === undefined ? {} : { grantId: matchedGrantId }),
    ...(decided.usageTaken === undefined ? {} : { usageTaken: decided.usageTaken }),
  };
}

/**
 * The verdict where authority could not be loaded: the caller hears one code, and the record of the load says why. No decision
 * was made, so none is recorded.
 */
export const TOOL_CALL_WITHOUT_AUTHORITY: ToolCallDecided = { status: 'denied', code: 'authority_unavailable', recorded: [] };

/** A tool has one action, one namespace and one owner, and is called at or below its declared path. @see spec/tools.md §6 */
export const requirementIsWithinCeiling = (
  requirement: CapabilityRequirement,
  ceiling: CapabilityRequirement,
  frame: OwnerFrame,
): boolean =>
  requirement.action === ceiling.action &&
  requirement.resource.namespace === ceiling.resource.namespace &&
  ownersAgree(requirement.resource.owner, ceiling.resource.owner, frame) &&
  isAtOrBelow(requirement.resource.path, ceiling.resource.path);
