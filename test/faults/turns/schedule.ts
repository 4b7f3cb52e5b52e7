import type { ServiceName } from '@sharedos/contracts';
import type { Fate, Guard } from './steps.ts';

/** `turns`: anything falls anywhere. Each other kind leads straight to one place where a rule could break. */
export const STORM_KINDS = ['turns', 'taken-for-dead', 'counters-rolled-back', 'counters-forgotten', 'killed-after-effect'] as const;
export type StormKind = (typeof STORM_KINDS)[number];

export interface StormOptions {
  readonly kind: StormKind;
  readonly seed: number;
  /** Of `turns` and `killed-after-effect`; the other kinds need as many as they need. */
  readonly turns: number;
  readonly without?: Guard | undefined;
}

/** One turn of the load. Its calls are appends of a line of its own to the file of a cell. */
export interface PlannedTurn {
  readonly executionId: string;
  readonly from: 'alice' | 'bob' | 'carol';
  /** Whose cells they are. Over those of somebody else a requester has what was passed on to it. */
  readonly owner: 'alice' | 'bob';
  /** The porter may be run so often and no more. */
  readonly agent: 'scout' | 'porter';
  readonly cells: readonly string[];
  /** Sent a second time, as somebody who heard nothing would. */
  readonly again: boolean;
}

/** A bounded grant of each owner over one cell. */
export interface PlannedCell {
  readonly cell: string;
  readonly maxUses: number;
}

/**
 * One budget over a tree of grants in a cell of alice's: from alice to bob with `maxUses`; from bob to scout, without a bound of its
 * own, and to carol with `carolUses`; from carol to scout with `scoutUses`. Every use by a leaf counts in all that are above it.
 */
export interface PlannedTree {
  readonly cell: string;
  readonly maxUses: number;
  readonly carolUses: number;
  readonly scoutUses: number;
}

/** Something that is done to a server once so many turns were answered, and before the next is sent. */
export interface PlannedAct {
  readonly afterTurns: number;
  readonly act: 'keep redis' | 'roll redis back';
}

export interface Schedule {
  readonly options: StormOptions;
  readonly replicas: Readonly<Record<ServiceName, number>>;
  readonly cells: readonly PlannedCell[];
  readonly trees: readonly PlannedTree[];
  readonly porterUses: number;
  readonly turns: readonly PlannedTurn[];
  /** The fates of the processes of each service, in the order in which they are started. Those after the last have none. */
  readonly fates: Readonly<Record<ServiceName, readonly Fate[]>>;
  /** Only of a load with one turn at a time. */
  readonly acts: readonly PlannedAct[];
  readonly messages: number;
  /** Messages in trouble, of a thousand. */
  readonly troubledPerMille: number;
  /** Turns that one executor runs at once: few, so that a process takes few turns with it. */
  readonly turnsAtOnce: number;
  /** Turns that each requester has under way at once. */
  readonly inFlight: number;
  /** How long a requester waits for an answer. One that comes later is looked for in the streams at the end. */
  readonly answerMs: number;
}

export const FREE_CELL = 'free';
/** A cell that nobody was granted anything in. */
export const FORBIDDEN_CELL = 'forbidden';
