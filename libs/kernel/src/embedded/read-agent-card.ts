import { type AccessContext, Address, type AgentCardView, AgentCardView as View } from '@sharedos/contracts';
import {
  type AgentCardRead,
  type AgentCardRefusal,
  agentCardRequest,
  composeAgentCard,
  otherViews,
  subjectCardContext,
} from '../agent-card.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue, frozenCopy } from '../contract-value.ts';
import { computeReach } from '../reach.ts';
import { type Held, type KernelCore, type KernelOperationOptions, compiledAuthority, heldAuthority, instantIn } from './core.ts';
import { decideOperation } from './decide-operation.ts';

export interface AgentCardReadOptions extends KernelOperationOptions {
  /** `reach` when absent. A reader that holds only a narrower one is refused, and told which. */
  readonly view?: AgentCardView;
}

/**
 * Describes one agent: who it is and where it may operate now. Reading is itself authorized, or the directory would say of
 * everybody whether they exist. Nothing is spent, and nothing of the subject is loaded before its reader may ask.
 *
 * @throws ContractError for a subject that is no address, AuditUnavailableError, and the signal's reason.
 * @see spec/authorization.md §10
 */
export const readAgentCard = async (
  core: KernelCore,
  given: AccessContext,
  givenSubject: Address,
  { view: givenView = 'reach', signal }: AgentCardReadOptions = {},
): Promise<AgentCardRead> => {
  const context = core.enter(given, signal);
  const subject = contractValue(Address, givenSubject);
  if (!subject.ok) throw new ContractError('subject of an agent card', subject.error);
  const view = contractValue(View, givenView);
  if (!view.ok) throw new ContractError('view of an agent card', view.error);
  const held = await core.hold(context, signal);
  if (held.resolution.status === 'unavailable') return refused('authority_unavailable');
  const request = agentCardRequest(subject.value, context.owner, view.value);
  const { decision } = await decideOperation(core, held, context, request, { consume: false });
  if (!decision.allowed) {
    const servableViews = await servable(core, held.resolution, context, subject.value, view.value);
    return frozenCopy({
      ...refused(decision.reasonCode),
      servableViews,
      ...(decision.requiredAuthority === undefined ? {} : { requiredAuthority: decision.requiredAuthority }),
    });
  }
  return serveCard(core, context, subject.value, view.value, signal);
};

const refused = (reasonCode: string): AgentCardRefusal => ({ status: 'refused', reasonCode, servableViews: [] });

/** Checked and not recorded: they are no reads, and name only what this reader holds anyway. */
const servable = async (
  core: KernelCore,
  resolution: Extract<Held['resolution'], { status: 'resolved' }>,
  context: AccessContext,
  subject: Address,
  view: AgentCardView,
): Promise<AgentCardView[]> => {
  const { installed, run } = core.decider;
  const views: AgentCardView[] = [];
  for (const other of otherViews(view)) {
    const request = agentCardRequest(subject, context.owner, other);
    const options = { now: instantIn(context), consume: false, mode: 'execute', ...installed } as const;
    if ((await run(compiledAuthority(core, resolution).decide(request, options))).decision.allowed) views.push(other);
  }
  return views;
};

/** Serves a view to a reader who may have it. The subject's authority shapes its reach and authorizes nothing. */
export const serveCard = async (
  core: KernelCore,
  context: AccessContext,
  subject: Address,
  view: AgentCardView,
  signal: AbortSignal | undefined,
): Promise<AgentCardRead> => {
  if (view === 'identity') return { status: 'served', card: frozenCopy(composeAgentCard(view, subject, context, [])) };
  const subjects = frozenCopy(subjectCardContext(context, subject));
  const { resolution } = await core.hold(subjects, signal);
  if (resolution.status === 'unavailable') return refused('authority_unavailable');
  const { installed, run } = core.decider;
  const reach = await run(computeReach(heldAuthority(resolution), { now: instantIn(context), ...installed }));
  if (reach.status === 'unavailable') return refused(reach.reasonCode);
  return { status: 'served', card: frozenCopy(composeAgentCard(view, subject, context, reach.reach)) };
};
