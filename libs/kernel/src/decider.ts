import type { Result } from '@sharedos/contracts';

/**
 * Rules as two pure functions: `decide` answers a command with events or a refusal, `evolve` folds an event into state.
 * Neither reads a clock, an id source or a store.
 */
export interface Decider<State, Command, Event, Refusal> {
  readonly initial: State;
  decide(command: Command, state: State): Result<readonly Event[], Refusal>;
  evolve(state: State, event: Event): State;
}

export const accept = <Event>(events: readonly Event[]): Result<readonly Event[], never> => ({ ok: true, value: events });
export const refuse = <Refusal>(refusal: Refusal): Result<never, Refusal> => ({ ok: false, error: refusal });

/** An assumption of ours broke. Only a process boundary catches this. */
export class Defect extends Error {
  override readonly name = 'Defect';
}

export function invariant(condition: boolean, assumption: string): asserts condition {
  if (!condition) throw new Defect(`expected that ${assumption}`);
}

export const unreachable = (value: never): never => {
  throw new Defect(`a case was not handled: ${JSON.stringify(value)}`);
};
