/** What is taken out, to see that the run notices. Only ever here, never in a service. */
export const GUARDS = ['barrier'] as const;
export type Guard = (typeof GUARDS)[number];

/** All that one authorizer is told of the weather, in its environment. */
export interface Weather {
  readonly seed: number;
  /** Each record of the log is heard up to so much late, in milliseconds; in their order. */
  readonly lagMs: number;
  readonly without?: Guard | undefined;
}

export const WEATHER_VARIABLE = 'SHAREDOS_TEST_GRANT_WEATHER';

/** The line that an authorizer prints now and then: what it has done so far. */
export const ANSWERS_EVENT = 'test answers';
export interface Answers {
  /** Turns it opened. */
  readonly opened: number;
  /** Times that it had to wait for the log before it could answer. */
  readonly waited: number;
}
