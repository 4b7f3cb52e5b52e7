import { loadavg } from 'node:os';
import type { AccessContext, CapabilityRequirement } from '@sharedos/contracts';
import {
  CapabilityAuthorizer,
  CompiledAuthority,
  type Decided,
  SPAN,
  type World,
  authorizationChecked,
  decide,
  decideSync,
  frozenCopy,
  measure,
  resolvedFrom,
} from '@sharedos/kernel';
import { casbin, casl, cedarWasm } from './kernel-peers.ts';
import { NOW, REQUESTS, ancestorsOf, authorityOf, contextOf, pathsOf, requirementOf, requirementsOf } from './kernel-world.ts';
import { type Times, type TimesAsync, inTurn, processorTimeOf, processorTimeOfAsync } from './processor-rate.ts';
import { type Row, type RowSpec, rowOf } from './rows.ts';

export interface KernelBenchOptions {
  /** Fewer and shorter rounds: figures to see that it works, not to quote. */
  readonly quick: boolean;
  /** What is being done, line by line. */
  readonly say: (line: string) => void;
}

const PLANS = {
  full: { rounds: 9, sampleMs: 60, actors: 10_000 },
  quick: { rounds: 3, sampleMs: 15, actors: 1_000 },
} as const;

const SIZES = [1, 16, 256] as const;
const DEPTHS = [0, 4, 16] as const;
const OUTCOMES = ['allow', 'deny'] as const;
type Outcome = (typeof OUTCOMES)[number];
const MANY = 256;

const EXECUTE = { now: NOW, consume: false, mode: 'execute' } as const;

/** One figure: microseconds of processor time of one. */
type Measurement = (sampleMs: number) => number | Promise<number>;
type Figures = ReadonlyMap<string, readonly number[]>;

/** Decisions in process, without a server: ours, the plain walk's and the peers', each in every round. */
export const benchKernel = async ({ quick, say }: KernelBenchOptions): Promise<readonly Row[]> => {
  const { rounds, sampleMs, actors } = quick ? PLANS.quick : PLANS.full;
  say('making authorities, policies and requests ready …');
  const first = new Map<string, Measurement>([...ourMeasurements(), ...beside(), ...(await peerMeasurements())]);
  const figures = await inRounds(first, { rounds, sampleMs }, say);
  // After all others: so many authorities fill the heap, and whoever is measured beside them collects it.
  say(`making the authorities of ${actors} actors ready …`);
  const last = new Map([['random actors', sync(randomActors(actors))]]);
  for (const [name, times] of await inRounds(last, { rounds, sampleMs }, () => undefined)) figures.set(name, times);
  return rowsOf(figures, actors);
};

/** Everything in every round, so that a neighbour that comes or goes meets all alike. */
const inRounds = async (
  measurements: ReadonlyMap<string, Measurement>,
  { rounds, sampleMs }: { readonly rounds: number; readonly sampleMs: number },
  say: (line: string) => void,
): Promise<Map<string, number[]>> => {
  const figures = new Map<string, number[]>(Array.from(measurements.keys(), (name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    say(round === 0 ? 'warming up …' : `round ${round} of ${rounds}, at a load of ${loadavg()[0]?.toFixed(1)} …`);
    for (const [name, measured] of measurements) {
      const time = await measured(sampleMs);
      if (round > 0) figures.get(name)?.push(time);
    }
  }
  return figures;
};

const sync =
  (work: Times): Measurement =>
  (sampleMs) =>
    processorTimeOf(sampleMs, work);
const awaited =
  (work: TimesAsync): Measurement =>
  (sampleMs) =>
    processorTimeOfAsync(sampleMs, work);

const nth = <Item>(items: readonly Item[], index: number): Item => items[index % items.length] as Item;

/** The hot path: nothing in the loop but the decision. */
const settling =
  (compiled: CompiledAuthority, requests: readonly CapabilityRequirement[]): Times =>
  (times) => {
    let allowed = 0;
    for (let index = 0; index < times; index += 1) {
      if (compiled.settle(requests[index % REQUESTS] as CapabilityRequirement, NOW, 'execute')?.allowed === true) allowed += 1;
    }
    return allowed;
  };

const ourMeasurements = (): Map<string, Measurement> => {
  // What is compared with each other is measured one after the other.
  const hot = new Map<string, Measurement>();
  const slow = new Map<string, Measurement>();
  for (const grants of SIZES) {
    const held = authorityOf(grants);
    const compiled = new CompiledAuthority(held);
    for (const outcome of OUTCOMES) {
      const requests = requirementsOf(grants, outcome);
      agree(
        `${grants} grants`,
        outcome,
        requests.map((request) => compiled.settle(request, NOW, 'execute')?.allowed),
      );
      hot.set(`compiled ${grants} ${outcome}`, sync(settling(compiled, requests)));
      slow.set(`walk ${grants} ${outcome}`, sync(inTurn(requests, (request) => decideSync(decide(held, request, EXECUTE), {}))));
    }
  }
  for (const depth of DEPTHS) {
    const held = authorityOf(MANY, { depth });
    const ancestors = ancestorsOf(depth);
    const requests = requirementsOf(MANY, 'allow');
    const compiled = new CompiledAuthority(held, { ancestorsPinned: true });
    for (const request of requests) decideSync(compiled.decide(request, EXECUTE), ancestors);
    agree(
      `chains of ${depth}`,
      'allow',
      requests.map((request) => compiled.settle(request, NOW, 'execute')?.allowed),
    );
    hot.set(`compiled chain ${depth}`, sync(settling(compiled, requests)));
    slow.set(`walk chain ${depth}`, sync(inTurn(requests, (request) => decideSync(decide(held, request, EXECUTE), ancestors))));
    slow.set(`first check ${depth}`, sync(firstChecks(depth, ancestors)));
  }
  return new Map([...hot, ...slow]);
};

/** The first decision of an authority with one grant: its index is built in it, and its chain read and judged. */
const firstChecks = (depth: number, ancestors: World): Times => {
  const held = authorityOf(1, { depth });
  const [request] = requirementsOf(1, 'allow') as [CapabilityRequirement];
  return (times) => {
    for (let index = 0; index < times; index += 1)
      decideSync(new CompiledAuthority(held, { ancestorsPinned: true }).decide(request, EXECUTE), ancestors);
  };
};

/** What stands beside the figure of a hot decision: what else a decision may cost, each by its name. */
const beside = (): Map<string, Measurement> => {
  const held = authorityOf(MANY);
  const compiled = new CompiledAuthority(held);
  const requests = { allow: requirementsOf(MANY, 'allow'), deny: requirementsOf(MANY, 'deny') };
  const paths = pathsOf(MANY, 'allow');
  const full = (request: CapabilityRequirement): Decided => decideSync(compiled.decide(request, EXECUTE), {});
  const context: AccessContext = contextOf();
  const all = new Map<string, Measurement>([
    ['first touch', sync(inTurn(paths, (path) => compiled.settle(requirementOf(path), NOW, 'execute')))],
    [
      'compiling',
      sync((times) => {
        for (let index = 0; index < times; index += 1) new CompiledAuthority(held).settle(nth(requests.allow, index), NOW, 'execute');
      }),
    ],
    ['denial in full', sync(inTurn(requests.deny, full))],
    ['denial explained', sync(inTurn(requests.deny, (request) => full(request).explanation))],
    ['copies', sync(inTurn(requests.allow, (request) => [frozenCopy(context), frozenCopy(requirementOf(request.resource.path))]))],
  ]);
  for (const outcome of OUTCOMES) {
    const authorizer = new CapabilityAuthorizer();
    const authority = resolvedFrom(held);
    const asked = requests[outcome];
    all.set(
      `authorize ${outcome}`,
      awaited(async (times) => {
        for (let index = 0; index < times; index += 1) await authorizer.authorize(authority, nth(asked, index));
      }),
    );
    const decided = asked.map(full).map(({ explanation, ...rest }) => ({ ...rest, ...(explanation === undefined ? {} : { explanation }) }));
    const mark = { id: 'record', at: NOW, context };
    all.set(
      `audit ${outcome}`,
      sync((times) => {
        for (let index = 0; index < times; index += 1)
          authorizationChecked(mark, {
            request: nth(asked, index),
            decided: nth(decided, index),
            consume: false,
            authorityHash: held.snapshot.hash,
          });
      }),
    );
  }
  const nothing = async (): Promise<void> => undefined;
  const sink = { record: () => undefined };
  all.set(
    'no span',
    awaited(async (times) => {
      for (let index = 0; index < times; index += 1) await measure(undefined, SPAN.AUTHORIZE, nothing);
    }),
  );
  all.set(
    'span',
    awaited(async (times) => {
      for (let index = 0; index < times; index += 1)
        await measure(sink, SPAN.AUTHORIZE, nothing, (_, scope) => scope.set('reasonCode', 'allowed'));
    }),
  );
  return all;
};

/** One decision each of actors in no order: their indexes do not stay in the processor's caches. */
const randomActors = (actors: number): Times => {
  const GRANTS = 4;
  const held = Array.from(
    { length: actors },
    (_, index) => new CompiledAuthority(authorityOf(GRANTS, { actor: { kind: 'agent', agentId: `agent-${index}` } })),
  );
  const requests = requirementsOf(GRANTS, 'allow');
  for (const compiled of held) compiled.settle(nth(requests, 0), NOW, 'execute');
  let state = 1;
  return (times) => {
    for (let index = 0; index < times; index += 1) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      nth(held, state >>> 8).settle(nth(requests, index), NOW, 'execute');
    }
  };
};

const PEERS = [casl, casbin, cedarWasm];

const peerMeasurements = async (): Promise<Map<string, Measurement>> => {
  const all = new Map<string, Measurement>();
  for (const { name, prepare } of PEERS)
    for (const grants of SIZES) {
      const asking = await prepare(grants);
      for (const outcome of OUTCOMES) {
        const { work, answers } = asking(outcome);
        agree(`${name} with ${grants} grants`, outcome, answers());
        all.set(`${name} ${grants} ${outcome}`, sync(work));
      }
    }
  return all;
};

/** @throws When somebody answers another question than the one that is measured. */
const agree = (who: string, outcome: Outcome, answers: readonly (boolean | undefined)[]): void => {
  if (!answers.every((allowed) => allowed === (outcome === 'allow'))) throw new Error(`${who} does not ${outcome} what is asked`);
};

const rowsOf = (figures: Figures, actors: number): readonly Row[] => {
  const times = (name: string): readonly number[] => figures.get(name) ?? [];
  const rates = (name: string): readonly number[] => times(name).map((time) => 1_000_000 / time);
  const perSecond = { unit: '1/s' } as const;
  const each = { unit: 'µs' } as const;
  const sized = SIZES.flatMap((grants) => OUTCOMES.map((outcome) => ({ grants, outcome })));
  const specs: RowSpec[] = [
    ...sized.map(({ grants, outcome }) => ({
      name: 'decision',
      params: { grants, outcome },
      ...perSecond,
      values: rates(`compiled ${grants} ${outcome}`),
      floors: rates(`walk ${grants} ${outcome}`),
      ...(grants === MANY ? { target: 8_000_000 } : {}),
    })),
    ...OUTCOMES.map((outcome) => ({
      name: 'decision, against 1 grant',
      params: { grants: MANY, outcome },
      ...each,
      values: times(`compiled ${MANY} ${outcome}`),
      floors: times(`compiled 1 ${outcome}`),
      target: 1.5,
    })),
    ...DEPTHS.map((chain) => ({
      name: 'decision, against no chain',
      params: { grants: MANY, chain },
      ...each,
      values: times(`compiled chain ${chain}`),
      floors: times('compiled chain 0'),
      ...(chain === 16 ? { target: 1.1 } : {}),
    })),
    ...DEPTHS.map((chain) => ({
      name: 'first decision of an authority',
      params: { grants: 1, chain },
      ...each,
      values: times(`first check ${chain}`),
    })),
    { name: 'first decision of an authority', params: { grants: MANY, chain: 0 }, ...each, values: times('compiling') },
    { name: 'decision, first touch of its request', params: { grants: MANY }, ...perSecond, values: rates('first touch') },
    { name: 'decision, random actors', params: { actors, grants: 4 }, ...perSecond, values: rates('random actors') },
    ...OUTCOMES.map((outcome) => ({
      name: 'CapabilityAuthorizer.authorize',
      params: { grants: MANY, outcome },
      ...perSecond,
      values: rates(`authorize ${outcome}`),
      ...(outcome === 'allow' ? { target: 1_000_000 } : {}),
    })),
    { name: 'denial with requiredAuthority', params: { grants: MANY }, ...each, values: times('denial in full') },
    { name: 'denial with requiredAuthority and explanation', params: { grants: MANY }, ...each, values: times('denial explained') },
    ...OUTCOMES.map((outcome) => ({
      name: 'audit record built',
      params: { grants: MANY, outcome },
      ...each,
      values: times(`audit ${outcome}`),
    })),
    { name: 'defensive copies of context and request', ...each, values: times('copies') },
    { name: 'span, no sink', ...each, values: times('no span') },
    { name: 'span, with a sink', ...each, values: times('span') },
    ...sized.map(({ grants, outcome }) => ({
      name: 'plain linear walk',
      params: { grants, outcome },
      ...perSecond,
      values: rates(`walk ${grants} ${outcome}`),
    })),
    ...DEPTHS.map((chain) => ({
      name: 'plain linear walk',
      params: { grants: MANY, outcome: 'allow', chain },
      ...perSecond,
      values: rates(`walk chain ${chain}`),
    })),
    ...PEERS.flatMap(({ name }) =>
      sized.map(({ grants, outcome }) => ({
        name,
        params: { grants, outcome },
        ...perSecond,
        values: rates(`${name} ${grants} ${outcome}`),
        floors: rates(`walk ${grants} ${outcome}`),
      })),
    ),
  ];
  return specs.map(rowOf);
};
