import type { Delivery } from '@sharedos/bus';
import {
  type AccessContext,
  type AuthorityExplain,
  type CapabilityRequirement,
  type Explanation,
  type GrantExplain,
  REJECTIONS_MAX,
  type Reply,
  instantOf,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { decideWith, decidedWithoutAuthority, invariant } from '@sharedos/kernel';
import { mayReadAuthority } from './may-read-authority.ts';
import type { CommandPorts } from '../ports.ts';
import type { TurnAuthorities } from './turn-authorities.ts';
import { type UsesSeen, worldOf } from './turn-world.ts';
import { type UpToDate, standingAt } from './up-to-date.ts';

/** Why authority answers a request as it does, for a service: every grant that was held, and what each of them failed. */
export const explainForService =
  (ports: CommandPorts, turns: TurnAuthorities) =>
  async ({ context, request, revision }: AuthorityExplain): Promise<Reply<Explanation>> => {
    const here = await standingAt(ports, revision);
    if (!here.ok) return here;
    return { ok: true, value: await explanationOf(ports, turns, here.value, context, request) };
  };

/** The same for the owner of the resources, or for whoever may read authority. Anybody else is refused, and that is on record. */
export const explainForPrincipal = (ports: CommandPorts, turns: TurnAuthorities) => {
  const reading = mayReadAuthority<Explanation>(ports, turns);
  return (body: GrantExplain, delivery: Delivery): Promise<Reply<Explanation>> => {
    const { principal, namespaceId, traceId } = delivery;
    invariant(principal !== undefined, 'explanations are given to principals');
    const { actor, authority, owner = principal, purpose, request, revision, at } = body;
    return reading(delivery, { owner, body }, async () => {
      const here = await standingAt(ports, revision);
      if (!here.ok) return here;
      const now = timestampOf((at === undefined ? undefined : instantOf(at)) ?? ports.clock());
      const context = { namespaceId, actor, authority, owner, purpose, traceId: traceId ?? 'explain', enabledToolNamespaces: [], now };
      return ok(await explanationOf(ports, turns, here.value, context, request));
    });
  };
};

const explanationOf = async (
  { fold, usage }: CommandPorts,
  turns: TurnAuthorities,
  { position, revision }: UpToDate,
  context: AccessContext,
  request: CapabilityRequirement,
): Promise<Explanation> => {
  // No turn that sees this revision was admitted before anything that it sees.
  const admittedAt = Math.max(instantOf(context.now) ?? 0, fold.index.latestInstant(position));
  const turn = turns.frozen(revision, position, admittedAt, { ...context, now: timestampOf(admittedAt) });
  const uses: UsesSeen = { seen: {} };
  const { authority } = turn;
  const decided = authority.ok
    ? await decideWith(
        authority.value.decide(request, { now: admittedAt, consume: false, mode: 'execute', ...turn.held }),
        worldOf(fold, usage, turn, uses),
      )
    : decidedWithoutAuthority(authority.error);
  const rejections = decided.explanation?.rejections ?? [];
  return {
    revision,
    admittedAt: timestampOf(admittedAt),
    decision: decided.decision,
    ...(authority.ok ? {} : { unavailable: authority.error.code }),
    grantsResolved: decided.explanation?.grantsResolved ?? 0,
    rejections: rejections.slice(0, REJECTIONS_MAX).map(({ grantId, reason }) => ({ grantId, reason })),
    omitted: Math.max(0, rejections.length - REJECTIONS_MAX),
    usage: { ...uses.seen },
  };
};
