import {
  AGENT_CARD_VIEWS,
  type AccessContext,
  type Address,
  AgentCard,
  type AgentCardView,
  type Capability,
  type CapabilityRequest,
  type CapabilityRequirement,
  type ReachSummary,
  type ResourceReach,
  addressPath,
  byCodeUnit,
  describeIssues,
} from '@sharedos/contracts';
import { invariant } from './decider.ts';

export const DIRECTORY_NAMESPACE = 'sharedos';
/** What every card hangs below, and what a host grants over. */
export const DIRECTORY_RESOURCE_ROOT: readonly string[] = Object.freeze(['directory']);
export const DIRECTORY_READ_ACTION = 'read';

/**
 * Where one view of one subject's card is read from. The widest is the subject's own path, so an exact grant on it serves that
 * view and none of the narrower ones, which are resources of their own.
 *
 * @see spec/authorization.md §10
 */
export const agentCardPath = (subject: Address, view: AgentCardView = 'reach'): string[] => [
  ...DIRECTORY_RESOURCE_ROOT,
  ...addressPath(subject),
  ...(view === 'reach' ? [] : [view]),
];

/** What one card read is decided on. */
export const agentCardRequest = (subject: Address, owner: Address, view: AgentCardView): CapabilityRequirement => ({
  resource: { namespace: DIRECTORY_NAMESPACE, path: agentCardPath(subject, view), owner },
  action: DIRECTORY_READ_ACTION,
});

/** What a reader needs for one view of one subject. */
export const agentCardCapability = (subject: Address, owner: Address, view: AgentCardView = 'reach'): Capability => {
  const { resource, action } = agentCardRequest(subject, owner, view);
  return { resource, actions: [action], scope: 'exact' };
};

/** What a reader needs for every card: it answers in bulk who exists, and is meant to look like it. */
export const directoryCapability = (owner: Address): Capability => ({
  resource: { namespace: DIRECTORY_NAMESPACE, path: [...DIRECTORY_RESOURCE_ROOT], owner },
  actions: [DIRECTORY_READ_ACTION],
  scope: 'descendants',
});

/**
 * The context that a subject's own grants are loaded under: the reader's, with the subject acting. So a card shows what the
 * subject holds from the authority and in the namespace that the reader itself operates under, and no more.
 */
export const subjectCardContext = (reader: AccessContext, subject: Address): AccessContext => ({ ...reader, actor: subject });

/** Which namespaces a reach touches, without paths. `entries` counts reach entries: what exists behind one is not asked. */
export const summarizeReach = (reach: readonly ResourceReach[]): ReachSummary[] =>
  [...Map.groupBy(reach, ({ namespace }) => namespace)]
    .sort(([a], [b]) => byCodeUnit(a, b))
    .map(([namespace, entries]) => ({
      namespace,
      actions: [...new Set(entries.flatMap(({ actions }) => actions))].sort(byCodeUnit),
      entries: entries.length,
    }));

/**
 * Builds one view from the fields it declares. No wider card is ever made on the way, so there is nothing to redact.
 *
 * @throws Defect when the result is no card.
 */
export const composeAgentCard = (
  view: AgentCardView,
  subject: Address,
  { namespaceId, now }: AccessContext,
  reach: readonly ResourceReach[],
): AgentCard => {
  const described = { subject, namespaceId, readAt: now };
  const card = AgentCard.safeParse(
    view === 'reach'
      ? { view, ...described, reach }
      : view === 'namespaces'
        ? { view, ...described, namespaces: summarizeReach(reach) }
        : { view, ...described },
  );
  invariant(card.success, `a composed card meets its contract${card.success ? '' : `: ${describeIssues(card.error)}`}`);
  return card.data;
};

export interface AgentCardServed {
  readonly status: 'served';
  readonly card: AgentCard;
}

/** A subject that is absent and one that this reader may not ask about are refused alike. */
export interface AgentCardRefusal {
  readonly status: 'refused';
  readonly reasonCode: string;
  /** The other views that this very reader is authorized for, in the order of views. */
  readonly servableViews: readonly AgentCardView[];
  readonly requiredAuthority?: CapabilityRequest;
}

export type AgentCardRead = AgentCardServed | AgentCardRefusal;

/** The views other than the one refused, in their order. */
export const otherViews = (view: AgentCardView): readonly AgentCardView[] => AGENT_CARD_VIEWS.filter((other) => other !== view);
