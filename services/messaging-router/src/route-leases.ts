import { type Bus, deleteMessage, lastOnSubject, readSubject } from '@sharedos/bus';
import {
  type Address,
  RouteRecord,
  type RouteState,
  type Result,
  type Unavailable,
  decodeOwnBody,
  err,
  ok,
  principalSubject,
  unavailable,
} from '@sharedos/contracts';
import { type RouteCommand, type RouteRefusal, route } from '@sharedos/kernel';

const ANSWER_MS = 4_000;
/** One for each time the route is changed by somebody else meanwhile. */
const ATTEMPTS = 8;

interface RouteAt {
  readonly state: RouteState;
  /** Where it stands in the stream; 0 where it was never written. */
  readonly sequence: number;
}

/** The routes of recipients, as they lease them: the last record on the subject of each stands, and each change expects the one before. */
export class RouteLeases {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** The route as it stands now, read anew each time: an old look at it lets nothing go. */
  async of(namespaceId: string, recipient: Address): Promise<Result<RouteState, Unavailable>> {
    const found = await this.#at(principalSubject('route', namespaceId, recipient));
    return found.ok ? ok(found.value.state) : found;
  }

  /** `unavailable`: the change may have been made. Each is safe to ask for again; opening again gives another lease. */
  async change(namespaceId: string, recipient: Address, command: RouteCommand): Promise<Result<RouteState, RouteRefusal | Unavailable>> {
    const subject = principalSubject('route', namespaceId, recipient);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const found = await this.#at(subject);
      if (!found.ok) return found;
      const { state, sequence } = found.value;
      const decided = route.decide(command, state);
      if (!decided.ok) return decided;
      if (decided.value.length === 0) return ok(state);
      const next = decided.value.reduce(route.evolve, state);
      const stored = await this.#bus.publishStored(
        subject,
        { message: RouteRecord, body: next },
        { timeoutMs: ANSWER_MS, expectedLastSubjectSequence: sequence },
      );
      if (stored.ok) {
        // The one before says nothing any more, and a subject holds a bounded number.
        if (sequence > 0) await deleteMessage(this.#bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
        return ok(next);
      }
      if (stored.error.kind === 'full') await this.#forgetOld(subject, sequence);
      else if (stored.error.kind !== 'wrong_sequence') return unavailable('the route was not stored');
    }
    return err({ kind: 'unavailable', reason: 'the route changed again and again' });
  }

  async #at(subject: string): Promise<Result<RouteAt, Unavailable>> {
    const last = await lastOnSubject(this.#bus, 'MESSAGES', subject, { timeoutMs: ANSWER_MS });
    if (!last.ok) return last;
    if (last.value === undefined) return ok({ state: route.initial, sequence: 0 });
    const state = decodeOwnBody(RouteRecord, last.value.data);
    return state.ok ? ok({ state: state.value, sequence: last.value.sequence }) : unavailable('the route cannot be read');
  }

  /** Of changes whose router died before it had taken out what they replaced. */
  async #forgetOld(subject: string, last: number): Promise<void> {
    const all = await readSubject(this.#bus, 'MESSAGES', subject, { timeoutMs: ANSWER_MS });
    for (const { sequence } of all.ok ? all.value : [])
      if (sequence < last) await deleteMessage(this.#bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
  }
}
