import type { Case, Step } from './case.ts';
import type { Violation } from './expectations.ts';
import type { Observed } from './observed.ts';
import { newStage, perform } from './perform.ts';

/** One case that is being run. */
export interface Staged {
  perform(step: Step): Promise<ReadonlyMap<string, Observed>>;
  /** The name under which an observation keeps the uses of a grant. */
  counter(grantId: string): string;
  /** Answers so far that are not those of the same case elsewhere. */
  differing?(): readonly Violation[];
}

/** Where cases are run. */
export interface Target {
  readonly name: 'embedded' | 'services';
  /** Why a case is not run here, from what it says alone; `undefined` when it has to pass. */
  cannotRun(one: Case): string | undefined;
  /** Cases that are answered otherwise here, on purpose, and why. One that passes all the same is a failure: it is named wrongly. */
  readonly byDesign: Readonly<Record<string, string>>;
  stage(one: Case): Promise<Staged>;
}

/** Profiles that the embedded kernel does not run, and why. Every other one has to pass. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'ext:views': 'grants bound to a view of a resource are not offered',
};

/** The kernel and the envelope in this process, over ports that the case describes. */
export const embedded: Target = {
  name: 'embedded',
  byDesign: {},
  cannotRun: ({ profile }) => (profile === undefined ? undefined : NOT_RUN[profile]),
  stage: async ({ world }) => {
    const stage = newStage(world);
    return { perform: (step) => perform(stage, step), counter: (grantId) => stage.counter(grantId) };
  },
};
