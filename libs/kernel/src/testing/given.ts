import { expect } from 'vitest';
import type { Decider } from '../decider.ts';

/** Given past events, when a command, then events or a refusal. */
export const given = <State, Command, Event, Refusal>(decider: Decider<State, Command, Event, Refusal>, events: readonly Event[]) => ({
  when: (command: Command) => {
    const state = events.reduce((before, event) => decider.evolve(before, event), decider.initial);
    const outcome = decider.decide(command, state);
    return {
      thenEvents: (...expected: readonly Event[]) => expect(outcome).toEqual({ ok: true, value: expected }),
      thenRefused: (refusal: Refusal) => expect(outcome).toEqual({ ok: false, error: refusal }),
      thenNothing: () => expect(outcome).toEqual({ ok: true, value: [] }),
    };
  },
});
