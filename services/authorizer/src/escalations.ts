import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import {
  type Address,
  type EscalationAt,
  type EscalationItem,
  type EscalationList,
  type EscalationOpen,
  type EscalationResolve,
  type EscalationShow,
  type EscalationsAt,
  type Instant,
  type Reply,
  type Result,
  type Revision,
  err,
  instantOf,
  ok,
  refused,
  revisionOf,
  sameAddress,
  unavailable,
} from '@sharedos/contracts';
import {
  type EscalationCommand,
  type EscalationState,
  composeEscalationGrant,
  escalation,
  escalationGrantId,
  invariant,
} from '@sharedos/kernel';
import { type Changed, type CommandRefusal, administer } from './administer.ts';
import { runGrantCommand } from './grant-command.ts';
import { readNamespaceEvent } from './namespace-events.ts';
import type { CommandPorts, Ports } from './ports.ts';
import { type Commander, runStreamCommand } from './stream-command.ts';
import { atLeast, upToDate } from './up-to-date.ts';

const PAGE = 50;

type Known = Exclude<EscalationState, { status: 'absent' }>;

/** Keeps a question that a turn ends on. It is in the log before the turn is told as escalated; asked again while open, it is one. */
export const openEscalation =
  ({ store, clock }: Ports) =>
  async ({ question }: EscalationOpen, delivery: Delivery): Promise<Reply<{ escalationId: string; revision: Revision }>> => {
    const commander = { commandId: question.executionId ?? question.traceId, principal: question.requester, at: clock() };
    const command = { type: 'OpenEscalation', question } as const;
    const ran = await runStreamCommand(store, delivery, commander, asked(delivery.namespaceId, question.id), command);
    return ran.ok
      ? { ok: true, value: { escalationId: question.id, revision: revisionOf(store.storeId, ran.value.position) } }
      : refused('log_unavailable', 'the question could not be kept; ask again', true);
  };

/** The questions that concern the caller, newest first. */
export const listEscalations =
  (ports: Ports) =>
  async ({ status, limit = PAGE }: EscalationList, { namespaceId, principal }: Delivery): Promise<Reply<EscalationsAt>> => {
    invariant(principal !== undefined, 'questions are read by principals');
    const here = await atLeast(ports, undefined);
    if (!here.ok) return here;
    const now = ports.clock();
    const items = ports.fold.namespaces
      .escalationsAt(namespaceId, here.value.position)
      .filter(({ question }) => concerns(question, principal))
      .map((state) => itemOf(state, now))
      .filter((item) => status === undefined || item.status === status)
      .sort((one, other) => (instantOf(other.question.requestedAt) ?? 0) - (instantOf(one.question.requestedAt) ?? 0));
    return { ok: true, value: { escalations: [...withinOneAnswer(items.slice(0, limit))], revision: here.value.revision } };
  };

/** One question; to others than those it concerns it is not there. */
export const showEscalation =
  (ports: Ports) =>
  async ({ escalationId }: EscalationShow, { namespaceId, principal }: Delivery): Promise<Reply<EscalationAt>> => {
    invariant(principal !== undefined, 'questions are read by principals');
    const here = await atLeast(ports, undefined);
    if (!here.ok) return here;
    const state = ports.fold.namespaces.escalationAt(namespaceId, escalationId, here.value.position);
    if (state.status === 'absent' || !concerns(state.question, principal))
      return refused('escalation_not_found', 'there is no such question for you in this namespace');
    return { ok: true, value: { escalation: itemOf(state, ports.clock()), revision: here.value.revision } };
  };

/** Answers a question, or withdraws it. Whoever it does not concern hears that it is not there. */
export const resolveEscalation = (ports: CommandPorts) => (body: EscalationResolve, delivery: Delivery) => {
  const { commandId, escalationId } = body;
  const about = { area: 'escalations', name: escalationId } as const;
  return administer<EscalationAt>(ports, delivery, { commandId, about, body }, async (by) => {
    const here = await upToDate(ports);
    if (here === undefined) return unavailable('this replica could not catch up with the log in time');
    const state = ports.fold.namespaces.escalationAt(delivery.namespaceId, escalationId, here.position);
    if (state.status === 'absent' || !concerns(state.question, by.principal)) return err({ code: 'escalation_not_found' });
    return answer(ports, delivery, by, state, body);
  });
};

/**
 * An approval issues its grant first and answers the question then. The grant's id follows from the question, so an approval that
 * was cut short between the two is found by it, and is finished by the next answer, whatever that says: what was granted was granted.
 */
const answer = async (
  ports: CommandPorts,
  delivery: Delivery,
  by: Commander,
  state: Known,
  { resolution }: EscalationResolve,
): Promise<Result<Changed<EscalationAt>, CommandRefusal>> => {
  const { namespaceId } = delivery;
  const { question } = state;
  const run = async (
    command: EscalationCommand,
    before: Changed<unknown>['acts'] = [],
  ): Promise<Result<Changed<EscalationAt>, CommandRefusal>> => {
    const ran = await runStreamCommand(ports.store, delivery, by, asked(namespaceId, question.id), command);
    if (!ran.ok) return ran;
    const { state: after, position, acts } = ran.value;
    invariant(after.status !== 'absent', 'a question that was answered is there');
    const value = { escalation: itemOf(after, by.at), revision: revisionOf(ports.store.storeId, position) };
    return ok({ value, acts: [...before, ...acts] });
  };
  const approval = (grant: NonNullable<EscalationItem['grant']>): EscalationCommand => ({
    type: 'ApproveEscalation',
    grant,
    by: by.principal,
    at: by.at,
  });
  const issued = ports.fold.index.grantAt(namespaceId, escalationGrantId(namespaceId, question), Infinity, Infinity)?.grant;
  if (state.status === 'open' && issued !== undefined && resolution.answer !== 'withdraw') return run(approval(asIssued(issued)));
  if (resolution.answer === 'refuse') return run({ type: 'RefuseEscalation', by: by.principal, at: by.at, reason: resolution.reason });
  if (resolution.answer === 'withdraw') return run({ type: 'WithdrawEscalation', by: by.principal, at: by.at, reason: resolution.reason });

  const grant = composeEscalationGrant(namespaceId, question, resolution, by.at);
  if (!grant.ok) return err(grant.error);
  // Nothing is issued that the question's own rules would not take as its answer. What they say of one answered before stands, too.
  const allowed = escalation.decide(approval(grant.value), state);
  // The same command sent again is found in the log under its own id, and gets its first answer.
  if (!allowed.ok && allowed.error.code !== 'escalation_answered') return err(allowed.error);
  if (!allowed.ok) return run(approval(asIssued(issued ?? grant.value)));
  const given = await runGrantCommand(
    ports.store,
    delivery,
    { ...by, grantId: grant.value.id },
    { type: 'IssueGrant', grant: grant.value },
  );
  return given.ok ? run(approval(asIssued(given.value.value.grant)), given.value.acts) : given;
};

/** A grant as it was issued, whether or not it was revoked since. */
const asIssued = <Grant extends { readonly revokedAt?: unknown }>({ revokedAt: _, ...grant }: Grant): Grant => grant as Grant;

const asked = (namespaceId: string, id: string) => ({
  stream: { category: 'escalation', namespaceId, id } as const,
  decider: escalation,
  parseEvent: readNamespaceEvent('escalation'),
});

const concerns = ({ requester, owner, reviewer }: Known['question'], principal: Address): boolean =>
  [requester, owner, reviewer].some((party) => sameAddress(party, principal));

/** One that nobody answered in time is told as expired, whether or not that was recorded. */
const itemOf = (state: Known, now: Instant): EscalationItem => {
  const { question, status } = state;
  const isOver = status === 'open' && question.expiresAt !== undefined && now >= (instantOf(question.expiresAt) ?? 0);
  const grant = 'grant' in state ? state.grant : undefined;
  return { question, status: isOver ? 'expired' : status, ...(grant === undefined ? {} : { grant }) };
};
