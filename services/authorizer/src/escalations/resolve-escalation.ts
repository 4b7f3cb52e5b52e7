import type { Delivery } from '@sharedos/bus';
import {
  type CapabilityGrant,
  type EscalationAt,
  type EscalationResolve,
  type Result,
  err,
  ok,
  revisionOf,
  unavailable,
} from '@sharedos/contracts';
import { type EscalationCommand, type EscalationState, composeEscalationGrant, escalation, invariant } from '@sharedos/kernel';
import { type Changed, type CommandRefusal, administer } from '../changes/administer.ts';
import { runGrantCommand } from '../changes/grant-command.ts';
import type { CommandPorts } from '../ports.ts';
import { type CommandOutcome, type Commander, runStreamCommand } from '../changes/stream-command.ts';
import { upToDate } from '../turns/up-to-date.ts';
import { answeredAlready, asIssued, finishApproval, isOf, undoApproval } from './finish-approval.ts';
import { type Known, concerns, grantFor, itemOf, questionStream } from './question.ts';
import type { ReviewRight } from './review-right.ts';
import type { Tidings } from './tidings.ts';

type Answered = Result<Changed<EscalationAt>, CommandRefusal>;

/** Answers a question, or withdraws it. Whoever it does not concern, and who may not review it, hears that it is not there. */
export const resolveEscalation =
  (ports: CommandPorts, mayReview: ReviewRight, tidings: Tidings) => (body: EscalationResolve, delivery: Delivery) => {
    const { commandId, escalationId } = body;
    const { namespaceId } = delivery;
    const about = { area: 'escalations', name: escalationId } as const;
    return administer<EscalationAt>(ports, delivery, { commandId, about, body }, async (by) => {
      const here = await upToDate(ports);
      if (here === undefined) return unavailable('this replica could not catch up with the log in time');
      const state = ports.fold.namespaces.escalationAt(namespaceId, escalationId, here.position);
      if (state.status === 'absent') return err({ code: 'escalation_not_found' });
      // Who asks reviews nothing of its own, whatever it holds.
      const isParty = concerns(state.question, by.principal);
      const registered = !isParty && (await mayReview(here, namespaceId, by.principal)(state.question));
      if (!isParty && !registered) return err({ code: 'escalation_not_found' });
      return new Answer(ports, tidings, delivery, by, state, registered).to(body);
    });
  };

/**
 * One answer to one question. An approval issues its grant first and answers the question then. The grant's id follows from the
 * question, so an approval that was cut short between the two is found by it, and anybody finishes it: what was granted was granted.
 */
class Answer {
  readonly #ports: CommandPorts;
  readonly #tidings: Tidings;
  readonly #delivery: Delivery;
  readonly #by: Commander;
  readonly #state: Known;
  readonly #registered: boolean;

  constructor(ports: CommandPorts, tidings: Tidings, delivery: Delivery, by: Commander, state: Known, registered: boolean) {
    this.#ports = ports;
    this.#tidings = tidings;
    this.#delivery = delivery;
    this.#by = by;
    this.#state = state;
    this.#registered = registered;
  }

  async to({ resolution }: EscalationResolve): Promise<Answered> {
    const { principal: by, at } = this.#by;
    const begun = grantFor(this.#ports, this.#delivery.namespaceId, this.#state.question);
    if (this.#state.status === 'open' && begun !== undefined) return this.#finish(begun);
    switch (resolution.answer) {
      case 'refuse':
        return this.#run({ type: 'RefuseEscalation', by, at, reason: resolution.reason, registered: this.#registered });
      case 'withdraw':
        return this.#run({ type: 'WithdrawEscalation', by, at, reason: resolution.reason });
      case 'approve':
        return this.#approve(resolution, begun);
    }
  }

  async #approve(
    resolution: Extract<EscalationResolve['resolution'], { answer: 'approve' }>,
    begun: CapabilityGrant | undefined,
  ): Promise<Answered> {
    const { store } = this.#ports;
    const { principal: by, commandId, at } = this.#by;
    const composed = composeEscalationGrant(this.#delivery.namespaceId, this.#state.question, resolution, { by, commandId, at });
    if (!composed.ok) return composed;
    const { value: grant } = composed;
    // Nothing is issued that the question's own rules would not take as its answer.
    const allowed = escalation.decide(this.#approval(grant), this.#state);
    // One that was answered before keeps its answer; the same command sent again is found in the log under its own id.
    if (!allowed.ok) return allowed.error.code === 'escalation_answered' ? this.#run(this.#approval(begun ?? grant)) : allowed;
    const boundTo = this.#state.question.call?.digest;
    const given = await runGrantCommand(store, this.#delivery, { ...this.#by, grantId: grant.id }, { type: 'IssueGrant', grant, boundTo });
    if (!given.ok) return 'code' in given.error && given.error.code === 'grant_exists' ? this.#overtaken() : given;
    const issued = given.value.value.grant;
    const answered = await this.#run(this.#approval(issued), given.value.acts);
    if (answered.ok || !('code' in answered.error) || answered.error.code !== 'escalation_answered') return answered;
    // It was refused or withdrawn between the two. What was granted meanwhile is taken back.
    const undone = await undoApproval(this.#ports, this.#delivery, issued, at);
    return undone.ok ? answered : undone;
  }

  /** Somebody else approved it at the same time, and was first. */
  async #overtaken(): Promise<Answered> {
    const begun = (await upToDate(this.#ports)) && grantFor(this.#ports, this.#delivery.namespaceId, this.#state.question);
    return begun === undefined ? unavailable('this replica could not catch up with the log in time') : this.#finish(begun);
  }

  async #finish(begun: CapabilityGrant): Promise<Answered> {
    const finished = await finishApproval(this.#ports, this.#tidings, this.#delivery, this.#state.question, begun);
    if (!finished.ok) return finished;
    return isOf(begun, this.#by) ? this.#answer(finished.value) : answeredAlready();
  }

  async #run(command: EscalationCommand, before: Changed<unknown>['acts'] = []): Promise<Answered> {
    const { namespaceId } = this.#delivery;
    const asked = questionStream(namespaceId, this.#state.question.id);
    const ran = await runStreamCommand(this.#ports.store, this.#delivery, this.#by, asked, command);
    if (!ran.ok) return ran;
    const { state, acts } = ran.value;
    if (acts.length > 0 && state.status !== 'absent')
      this.#tidings.answered(namespaceId, state, revisionOf(this.#ports.store.storeId, ran.value.position));
    return this.#answer({ ...ran.value, acts: [...before, ...acts] });
  }

  #answer({ state, position, acts }: CommandOutcome<EscalationState>): Answered {
    invariant(state.status !== 'absent', 'a question that was answered is there');
    const value = { escalation: itemOf(state, this.#by.at), revision: revisionOf(this.#ports.store.storeId, position) };
    return ok({ value, acts });
  }

  #approval(grant: CapabilityGrant): EscalationCommand {
    const { principal: by, at } = this.#by;
    return { type: 'ApproveEscalation', grant: asIssued(grant), by, at, registered: this.#registered };
  }
}
