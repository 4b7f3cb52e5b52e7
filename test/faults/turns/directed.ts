import { FREE_CELL, type PlannedTurn, type Schedule, type StormOptions } from './schedule.ts';
import type { Fate } from './steps.ts';

/**
 * Small schedules that lead one process or server straight to where a rule could break: no lots are drawn. The first three each come
 * to the one guard that upholds the rule, and break it without.
 */
export const directedSchedule = (options: StormOptions): Schedule | undefined => {
  switch (options.kind) {
    case 'turns':
      return undefined;
    case 'taken-for-dead':
      return takenForDead(options);
    case 'counters-rolled-back':
      return countersRolledBack(options);
    case 'counters-forgotten':
      return countersForgotten(options);
    case 'killed-after-effect':
      return killedAfterEffect(options);
  }
};

const ANSWER_MS = 180_000;
const CELL = 'cell-0';
const MAX_USES = 4;

/** One process of each service that a turn needs, and nothing that befalls them. */
const directed = (options: StormOptions, turns: readonly PlannedTurn[], executorFates: readonly Fate[]): Schedule => ({
  options,
  replicas: { authorizer: 1, 'tool-executor': 1, 'messaging-router': 0, 'audit-projector': 1 },
  cells: [{ cell: CELL, maxUses: MAX_USES }],
  trees: [],
  porterUses: 1,
  turns,
  fates: { authorizer: [], 'tool-executor': executorFates, 'messaging-router': [], 'audit-projector': [] },
  acts: [],
  messages: 0,
  troubledPerMille: 0,
  turnsAtOnce: 1,
  inFlight: 1,
  answerMs: ANSWER_MS,
});

const turnsIn = (cell: string, count: number): readonly PlannedTurn[] =>
  Array.from({ length: count }, (_, index) => ({
    executionId: `turn-${index}`,
    from: 'alice',
    owner: 'alice',
    agent: 'scout',
    cells: [cell],
    again: false,
  }));

/** The owner of a turn stands still before it admits a call, is taken for dead, and goes on when its turn was ended and answered. */
const takenForDead = (options: StormOptions): Schedule =>
  directed(options, turnsIn(FREE_CELL, 1), [{ step: 'before ledger.admitted', nth: 1, blow: 'freeze until answered' }]);

/** Of four uses three are spent when the counters go back to one, their epoch with them; then as many turns as the grant has uses ask. */
const countersRolledBack = (options: StormOptions): Schedule => ({
  ...directed(options, turnsIn(CELL, 3 + MAX_USES), []),
  acts: [
    { afterTurns: 1, act: 'keep redis' },
    { afterTurns: 3, act: 'roll redis back' },
  ],
});

/** A use is claimed, the counters forget it, and its owner dies before it admits anything on it: whoever ends the turn gives it back. */
const countersForgotten = (options: StormOptions): Schedule =>
  directed(options, turnsIn(CELL, 1), [{ step: 'after ledger.use', nth: 1, blow: 'wipe redis, then kill' }]);

/** As many executors as turns, each dead before the effect of its turn is on record. */
const killedAfterEffect = (options: StormOptions): Schedule => ({
  ...directed(
    options,
    turnsIn(FREE_CELL, options.turns).map((turn, index) => (index % 2 === 0 ? turn : { ...turn, from: 'bob', owner: 'bob' })),
    Array.from({ length: options.turns }, () => ({ step: 'after effect', nth: 1, blow: 'kill' })),
  ),
  replicas: { authorizer: 1, 'tool-executor': 2, 'messaging-router': 0, 'audit-projector': 1 },
  inFlight: 8,
});
