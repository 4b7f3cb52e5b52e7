import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { type Lots, lotsFrom } from './lots.ts';
import { ARROWS, type Blow, type Fate, type Guard, type Step } from './steps.ts';

export interface StormOptions {
  /** What falls: anything anywhere, or an executor's death right after each effect and before it is on record. */
  readonly kind: 'turns' | 'killed-after-effect';
  readonly seed: number;
  readonly turns: number;
  readonly without?: Guard | undefined;
}

/** One turn of the load. Its calls are appends of a line of its own to the file of a cell. */
export interface PlannedTurn {
  readonly executionId: string;
  readonly from: 'alice' | 'bob';
  /** The porter may be run so often and no more. */
  readonly agent: 'scout' | 'porter';
  readonly cells: readonly string[];
  /** Sent a second time, as somebody who heard nothing would. */
  readonly again: boolean;
}

/** A bounded grant of each owner over one cell. Under `parent` it counts in that one's budget as well. */
export interface PlannedCell {
  readonly cell: string;
  readonly maxUses: number;
}

export interface Schedule {
  readonly options: StormOptions;
  readonly cells: readonly PlannedCell[];
  readonly porterUses: number;
  readonly turns: readonly PlannedTurn[];
  /** The fates of the processes of each service, in the order in which they are started. Those after the last have none. */
  readonly fates: Readonly<Record<ServiceName, readonly Fate[]>>;
  readonly messages: number;
  /** Messages in trouble, of a thousand. */
  readonly troubledPerMille: number;
  /** Turns that one executor runs at once: few, so that a process takes few turns with it. */
  readonly turnsAtOnce: number;
}

export const FREE_CELL = 'free';
/** A cell that nobody was granted anything in. */
export const FORBIDDEN_CELL = 'forbidden';

const MESSAGES_STRUCK_FROM = 500;
const TURNS_A_CELL = 40;
/** Enough turns between two blows that the load outlasts them. */
const TURNS_A_BLOW = 14;

/** All that a run will do, from its seed: what is asked, and where each process meets its fate. */
export const scheduleOf = (options: StormOptions): Schedule =>
  options.kind === 'killed-after-effect' ? deathsAfterEffects(options) : stormOf(options);

/** As many executors as turns, each dead before the effect of its turn is on record. */
const deathsAfterEffects = (options: StormOptions): Schedule => ({
  options,
  cells: [],
  porterUses: 1,
  turns: Array.from({ length: options.turns }, (_, index) => ({
    executionId: `turn-${index}`,
    from: index % 2 === 0 ? 'alice' : 'bob',
    agent: 'scout',
    cells: [FREE_CELL],
    again: false,
  })),
  fates: {
    authorizer: [],
    'tool-executor': Array.from({ length: options.turns }, () => ({ step: 'after effect', nth: 1, blow: 'kill' })),
    'messaging-router': [],
    'audit-projector': [],
  },
  messages: 0,
  troubledPerMille: 0,
  turnsAtOnce: 1,
});

const stormOf = (options: StormOptions): Schedule => {
  const lots = lotsFrom(options.seed);
  const cells = Array.from({ length: Math.max(2, Math.ceil(options.turns / TURNS_A_CELL)) }, (_, index) => ({
    cell: `cell-${index}`,
    maxUses: 3 + lots.below(12),
  }));
  const turns = Array.from({ length: options.turns }, (_, index) => turnOf(lots, index, cells));
  // A send whose router died is only known after a minute: a short run has no time for it.
  const struck = SERVICE_NAMES.filter((service) => service !== 'messaging-router' || options.turns >= MESSAGES_STRUCK_FROM);
  const blows = Math.max(10, Math.floor(options.turns / TURNS_A_BLOW));
  const fates = fatesOf(lots, blows, struck);
  return {
    options,
    cells,
    porterUses: 5 + Math.floor(options.turns / 50),
    turns,
    fates,
    messages: Math.ceil(options.turns / 20),
    troubledPerMille: 15,
    turnsAtOnce: 4,
  };
};

const turnOf = (lots: Lots, index: number, cells: readonly PlannedCell[]): PlannedTurn => ({
  executionId: `turn-${index}`,
  from: lots.one(['alice', 'bob']),
  agent: lots.below(12) === 0 ? 'porter' : 'scout',
  cells: Array.from({ length: 1 + lots.below(3) }, () => {
    const lot = lots.below(10);
    if (lot < 4) return FREE_CELL;
    return lot < 9 ? lots.one(cells).cell : FORBIDDEN_CELL;
  }),
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
