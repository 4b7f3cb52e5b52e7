import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { directedSchedule } from './directed.ts';
import { type Lots, lotsFrom } from './lots.ts';
import {
  FORBIDDEN_CELL,
  FREE_CELL,
  type PlannedCell,
  type PlannedTree,
  type PlannedTurn,
  type Schedule,
  type StormOptions,
} from './schedule.ts';
import { ARROWS, type Blow, type Fate, type Step } from './steps.ts';

const MESSAGES_STRUCK_FROM = 500;
const TURNS_A_CELL = 40;
const TURNS_A_TREE = 40;
/** Enough turns between two blows that the load outlasts them. */
const TURNS_A_BLOW = 14;

/** All that a run will do, from its seed: what is asked, and where each process meets its fate. */
export const scheduleOf = (options: StormOptions): Schedule => directedSchedule(options) ?? stormOf(options);

const stormOf = (options: StormOptions): Schedule => {
  const lots = lotsFrom(options.seed);
  const cells = Array.from({ length: Math.max(2, Math.ceil(options.turns / TURNS_A_CELL)) }, (_, index) => ({
    cell: `cell-${index}`,
    maxUses: 3 + lots.below(12),
  }));
  const trees = Array.from({ length: Math.max(1, Math.ceil(options.turns / TURNS_A_TREE)) }, (_, index) => ({
    cell: `tree-${index}`,
    maxUses: 4 + lots.below(6),
    carolUses: 3 + lots.below(6),
    scoutUses: 2 + lots.below(6),
  }));
  const turns = Array.from({ length: options.turns }, (_, index) =>
    index % 4 === 3 ? treeTurnOf(lots, index, trees) : turnOf(lots, index, cells),
  );
  // A send whose router died is only known after a minute: a short run has no time for it.
  const struck = SERVICE_NAMES.filter((service) => service !== 'messaging-router' || options.turns >= MESSAGES_STRUCK_FROM);
  const blows = Math.max(10, Math.floor(options.turns / TURNS_A_BLOW));
  const fates = fatesOf(lots, blows, struck);
  return {
    options,
    replicas: { authorizer: 2, 'tool-executor': 2, 'messaging-router': 1, 'audit-projector': 1 },
    cells,
    trees,
    porterUses: 5 + Math.floor(options.turns / 50),
    turns,
    fates,
    acts: [],
    messages: Math.ceil(options.turns / 20),
    troubledPerMille: 15,
    turnsAtOnce: 4,
    inFlight: 8,
    answerMs: 20_000,
  };
};

const turnOf = (lots: Lots, index: number, cells: readonly PlannedCell[]): PlannedTurn => {
  const owner = lots.one(['alice', 'bob'] as const);
  return {
    executionId: `turn-${index}`,
    from: owner,
    owner,
    agent: lots.below(12) === 0 ? 'porter' : 'scout',
    cells: Array.from({ length: 1 + lots.below(3) }, () => {
      const lot = lots.below(10);
      if (lot < 4) return FREE_CELL;
      return lot < 9 ? lots.one(cells).cell : FORBIDDEN_CELL;
    }),
    again: lots.below(8) === 0,
  };
};

/** A turn of somebody whom alice's grants were passed on to, with calls that draw on shared budgets. */
const treeTurnOf = (lots: Lots, index: number, trees: readonly PlannedTree[]): PlannedTurn => ({
  executionId: `turn-${index}`,
  from: lots.one(['bob', 'carol']),
  owner: 'alice',
  agent: 'scout',
  cells: Array.from({ length: 1 + lots.below(3) }, () => (lots.below(12) === 0 ? FORBIDDEN_CELL : lots.one(trees).cell)),
  again: lots.below(8) === 0,
});

/** Every arrow is struck before and after, as often as the number of blows allows, and the servers as well. */
const fatesOf = (lots: Lots, blows: number, struck: readonly ServiceName[]): Schedule['fates'] => {
  const fates: Record<ServiceName, Fate[]> = { authorizer: [], 'tool-executor': [], 'messaging-router': [], 'audit-projector': [] };
  const all = struck.flatMap((service) =>
    ARROWS[service].flatMap((arrow) => (['before', 'after'] as const).map((side) => ({ service, step: `${side} ${arrow}` as Step }))),
  );
  let deck: typeof all = [];
  for (let blow = 0; blow < blows; blow += 1) {
    if (deck.length === 0) deck = lots.shuffled(all);
    const { service, step } = deck.pop() as (typeof all)[number];
    fates[service].push({ step, nth: 1 + lots.below(4), blow: blowOn(lots, service) });
  }
  // What each guard is there for, at least twice in any run: an owner that was taken for dead, counters that went back, and
  // counters that forgot a use whose owner then died.
  for (const step of ['before ledger.admitted', 'after effect'] as const) fates['tool-executor'].unshift({ step, nth: 2, blow: 'freeze' });
  for (let twice = 0; twice < 2; twice += 1) {
    fates['tool-executor'].unshift({ step: 'after ledger.use', nth: 2, blow: 'wipe redis, then kill' });
    fates.authorizer.unshift({ step: 'after counters.take', nth: 8, blow: 'roll redis back' });
  }
  return fates;
};

const blowOn = (lots: Lots, service: ServiceName): Blow => {
  const lot = lots.below(20);
  // Redis is struck where its answers are used.
  if (lot < 3 && (service === 'tool-executor' || service === 'authorizer'))
    return lots.one(['kill redis', 'wipe redis', 'roll redis back'] as const);
  if (lot < 5) return 'kill nats';
  return lot < 7 && service === 'tool-executor' ? 'freeze' : 'kill';
};
