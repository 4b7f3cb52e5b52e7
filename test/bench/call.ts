import { type Authority, askAuthority } from './authority.ts';
import { ALICE, BOB, type BenchSystem, CAROL, TOOL, startBenchSystem } from './bench-system.ts';
import { type ExecutorTurn, NO_TOOL, benchCall, benchRegistry, contextOf, handlerOf, openExecutorTurn } from './executor-turn.ts';
import { type CallBytes, type Floors, startFloors } from './floors.ts';
import { processorMs } from './processor-time.ts';
import { runTurn, timesBetweenCalls } from './real-turns.ts';
import { type Row, type RowSpec, median, percentile, rowOf } from './rows.ts';
import { inFlight, oneByOne } from './sampling.ts';

export interface CallBenchOptions {
  /** Fewer and shorter runs: figures to see that it works, not to quote. */
  readonly quick: boolean;
  /** What is being done, line by line. */
  readonly say: (line: string) => void;
  /** A folder for V8 profiles of the services. */
  readonly cpuProfiles?: string | undefined;
}

interface Plan {
  readonly runs: number;
  /** No run is begun after this. */
  readonly budgetMs: number;
  /** How long one figure is sampled in one run; a rate takes longer to settle. Time and not a count, so that a slow machine does not take longer. */
  readonly sampleMs: number;
  readonly rateMs: number;
}

const PLANS = {
  full: { runs: 5, budgetMs: 60_000, sampleMs: 400, rateMs: 1_000 },
  quick: { runs: 2, budgetMs: 6_000, sampleMs: 100, rateMs: 300 },
} as const satisfies Record<string, Plan>;

const AT_ONCE = 64;
const WARM_CALLS = 5;
/** Calls of one turn of the sample, and of each of the turns that run at once. */
const [CALLS_MIN, CALLS_MAX] = [10, 900];

/** The figures of one run, by the name of what was measured. */
type Run = Readonly<Record<keyof Awaited<ReturnType<typeof measure>>, number>>;

/** One mediated tool call through the real system, and its floors in the same runs. */
export const benchCalls = async ({ quick, say, cpuProfiles }: CallBenchOptions): Promise<readonly Row[]> => {
  const plan: Plan = quick ? PLANS.quick : PLANS.full;
  say('starting nats-server, redis-server and the four services …');
  const bench = await startBenchSystem(say, cpuProfiles);
  const closers: (() => Promise<unknown>)[] = [() => bench.stop()];
  try {
    const authority = await askAuthority(bench, ALICE);
    closers.push(() => authority.close());
    const bytes = await bytesOfCall(bench, authority);
    say(`one call: a request of ${bytes.request} and a reply of ${bytes.reply} bytes, two records of ${bytes.record} on average`);
    const floors = await startFloors(bench, bytes);
    closers.push(() => floors.stop());
    say('warming up …');
    await callsAtOnce(bench, WARM_CALLS);
    await inFlight(plan.rateMs, AT_ONCE, authority.decide);
    const runs: Run[] = [];
    const begun = performance.now();
    while (runs.length < plan.runs && (runs.length === 0 || performance.now() - begun < plan.budgetMs)) {
      say(`run ${runs.length + 1} of ${plan.runs} …`);
      runs.push(await measure(bench, authority, floors, plan));
    }
    return rowsOf(runs, bytes);
  } finally {
    for (const close of closers.reverse()) await close();
  }
};

const bytesOfCall = async (bench: BenchSystem, authority: Authority): Promise<CallBytes> => {
  const turn = await openExecutorTurn(bench, ALICE);
  await oneByOne(50, () => turn.call(TOOL));
  return { ...(await authority.bytes()), record: await turn.recordBytes() };
};

const measure = async (bench: BenchSystem, authority: Authority, floors: Floors, plan: Plan) => {
  const { sampleMs, rateMs } = plan;
  const p50 = async (work: () => Promise<unknown>): Promise<number> => median(await oneByOne(sampleMs, work));

  const bare = {
    request: await p50(floors.request),
    stockRequest: await p50(floors.stockRequest),
    publish: await p50(floors.publish),
    stockPublish: await p50(floors.stockPublish),
    lua: await p50(floors.lua),
    requestsAtOnce: await inFlight(rateMs, AT_ONCE, floors.request),
    publishesAtOnce: await inFlight(rateMs, AT_ONCE, floors.publish),
  };
  const asked = {
    tool: await toolAlone(bench, sampleMs),
    barrier: await p50(authority.barrier),
    open: await p50(authority.open),
    decide: await p50(authority.decide),
    decidesAtOnce: await inFlight(rateMs, AT_ONCE, authority.decide),
  };

  const unbounded = await openExecutorTurn(bench, ALICE);
  const bounded = await openExecutorTurn(bench, CAROL);
  const mediation = await oneByOne(sampleMs, () => unbounded.call(NO_TOOL));
  const mediationBounded = await oneByOne(sampleMs, () => bounded.call(NO_TOOL));
  const here = {
    mediation: median(mediation),
    mediation99: percentile(mediation, 99),
    mediationBounded: median(mediationBounded),
    mediationBounded99: percentile(mediationBounded, 99),
    mediationWithTool: await p50(() => unbounded.call(TOOL)),
    mediationsAtOnce: await mediationsAtOnce(bench, rateMs),
  };

  const calls = callsIn(sampleMs, here.mediationWithTool);
  const [alice, carol] = [await bench.listen(ALICE), await bench.listen(CAROL)];
  const between = await timesBetweenCalls(bench, alice, ALICE, calls);
  const betweenBounded = await timesBetweenCalls(bench, carol, CAROL, calls);
  await Promise.all([alice.close(), carol.close()]);
  const real = {
    call: median(between),
    call99: percentile(between, 99),
    callBounded: median(betweenBounded),
    callBounded99: percentile(betweenBounded, 99),
    callByDifference: await callByDifference(bench, calls),
  };
  const callsPerTurn = callsIn(rateMs, 1_000_000 / (here.mediationsAtOnce / AT_ONCE));
  const before = await processorTimes(bench);
  const atOnce = await callsAtOnce(bench, callsPerTurn);
  const after = await processorTimes(bench);
  const perCall = (process: keyof typeof after): number => ((after[process] - before[process]) * 1_000) / (AT_ONCE * callsPerTurn);
  const loaded = {
    callsAtOnce: atOnce,
    executorTime: perCall('executor'),
    authorizerTime: perCall('authorizer'),
    projectorTime: perCall('projector'),
    brokerTime: perCall('broker'),
  };
  return { ...bare, ...asked, ...here, ...real, ...loaded };
};

/** How many calls of about so many microseconds fill the time, one after the other. */
const callsIn = (forMs: number, callTime: number): number =>
  Math.min(CALLS_MAX, Math.max(CALLS_MIN, Math.round((forMs * 1_000) / callTime)));

/** The tool's own work, without anything around it. */
const toolAlone = async ({ stack }: BenchSystem, sampleMs: number): Promise<number> => {
  const handler = handlerOf(benchRegistry(stack.filesRoot), TOOL);
  const context = contextOf(ALICE);
  const call = benchCall(context, TOOL, 'alone');
  const { signal } = new AbortController();
  return median(await oneByOne(sampleMs, () => handler.invoke(context, call, signal)));
};

/** What a longer turn takes more than a short one, by call: opening, claiming and answering fall out. A mean, not a median. */
const callByDifference = async (bench: BenchSystem, calls: number): Promise<number> => {
  const short = await runTurn(bench, ALICE, Math.ceil(calls / 5));
  const long = await runTurn(bench, ALICE, calls + Math.ceil(calls / 5));
  return ((long - short) * 1_000) / calls;
};

/** Turns of two principals, for one may queue fifty. Opening the turns and answering them is in the time. */
const callsAtOnce = async (bench: BenchSystem, callsPerTurn: number): Promise<number> => {
  const begun = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => runTurn(bench, index % 2 === 0 ? ALICE : BOB, callsPerTurn)));
  return (AT_ONCE * callsPerTurn) / ((performance.now() - begun) / 1_000);
};

const processorTimes = async ({ stack, system }: BenchSystem) => {
  const of = (name: keyof typeof system.services): Promise<number> => processorMs(system.services[name][0]?.pid ?? NaN);
  return {
    executor: await of('tool-executor'),
    authorizer: await of('authorizer'),
    projector: await of('audit-projector'),
    broker: await processorMs(stack.nats.pid),
  };
};

/** The mediation of many turns in this process, each with one call at a time. */
const mediationsAtOnce = async (bench: BenchSystem, rateMs: number): Promise<number> => {
  const idle = await Promise.all(Array.from({ length: AT_ONCE }, () => openExecutorTurn(bench, ALICE)));
  return inFlight(rateMs, AT_ONCE, async () => {
    const turn = idle.pop() as ExecutorTurn;
    await turn.call(NO_TOOL);
    idle.push(turn);
  });
};

const rowsOf = (runs: readonly Run[], bytes: CallBytes): readonly Row[] => {
  const each = (figure: (run: Run) => number): readonly number[] => runs.map(figure);
  const unbounded = each(({ request, publish }) => request + 2 * publish);
  const bounded = each(({ request, publish, lua }) => request + 3 * publish + lua);
  /** What the broker could do if nothing but the bare steps of a call were done, one kind at a time. */
  const callsFloor = each(({ requestsAtOnce, publishesAtOnce }) => 1 / (1 / requestsAtOnce + 2 / publishesAtOnce));
  const µs = { unit: 'µs' } as const;
  const rate = { unit: '1/s' } as const;
  const tool = { tool: TOOL };
  return [
    { name: 'floor: request', params: { bytes: bytes.request, replyBytes: bytes.reply }, ...µs, values: each((run) => run.request) },
    { name: 'floor: request, stock client', ...µs, values: each((run) => run.stockRequest) },
    { name: 'floor: publish with ack', params: { bytes: bytes.record }, ...µs, values: each((run) => run.publish) },
    { name: 'floor: publish with ack, stock client', params: { bytes: bytes.record }, ...µs, values: each((run) => run.stockPublish) },
    { name: 'floor: Lua step', ...µs, values: each((run) => run.lua) },
    { name: 'floor: requests', params: { inFlight: AT_ONCE }, ...rate, values: each((run) => run.requestsAtOnce) },
    { name: 'floor: publishes with ack', params: { inFlight: AT_ONCE }, ...rate, values: each((run) => run.publishesAtOnce) },
    { name: 'the tool alone', params: tool, ...µs, values: each((run) => run.tool) },
    { name: 'call, unbounded, p50', params: tool, ...µs, values: each((run) => run.call), floors: unbounded, target: 1 },
    { name: 'call, unbounded, p99', params: tool, ...µs, values: each((run) => run.call99) },
    { name: 'call, bounded, p50', params: tool, ...µs, values: each((run) => run.callBounded), floors: bounded, target: 1 },
    { name: 'call, bounded, p99', params: tool, ...µs, values: each((run) => run.callBounded99) },
    { name: 'call, unbounded, mean by difference', params: tool, ...µs, values: each((run) => run.callByDifference), floors: unbounded },
    {
      name: 'calls, unbounded',
      params: { ...tool, inFlight: AT_ONCE },
      ...rate,
      values: each((run) => run.callsAtOnce),
      floors: callsFloor,
      target: 10_000,
    },
    ...processorRows(runs),
    {
      name: 'mediation, unbounded, p50',
      params: { tool: 'none' },
      ...µs,
      values: each((run) => run.mediation),
      floors: unbounded,
      target: 1,
    },
    { name: 'mediation, unbounded, p99', params: { tool: 'none' }, ...µs, values: each((run) => run.mediation99) },
    {
      name: 'mediation, bounded, p50',
      params: { tool: 'none' },
      ...µs,
      values: each((run) => run.mediationBounded),
      floors: bounded,
      target: 1,
    },
    { name: 'mediation, bounded, p99', params: { tool: 'none' }, ...µs, values: each((run) => run.mediationBounded99) },
    { name: 'mediation, unbounded, p50', params: tool, ...µs, values: each((run) => run.mediationWithTool), floors: unbounded },
    {
      name: 'mediations, unbounded',
      params: { tool: 'none', inFlight: AT_ONCE },
      ...rate,
      values: each((run) => run.mediationsAtOnce),
      floors: callsFloor,
    },
    { name: 'decision over NATS', ...µs, values: each((run) => run.decide), floors: each((run) => run.request), target: 1.2 },
    {
      name: 'decisions over NATS',
      params: { inFlight: AT_ONCE },
      ...rate,
      values: each((run) => run.decidesAtOnce),
      floors: each((run) => run.requestsAtOnce),
      target: 25_000,
    },
    { name: 'opening a turn', ...µs, values: each((run) => run.open), floors: each((run) => run.barrier), target: 1.5 },
    {
      name: 'opening a turn, all its steps',
      ...µs,
      values: each((run) => run.open),
      floors: each(({ request, barrier, publish }) => request + barrier + publish),
    },
  ].map(rowOf);
};

/** None where the machine does not say. */
const processorRows = (runs: readonly Run[]): readonly RowSpec[] => {
  const processes = {
    'tool-executor': 'executorTime',
    authorizer: 'authorizerTime',
    'audit-projector': 'projectorTime',
    'nats-server': 'brokerTime',
  } as const;
  return Object.entries(processes).flatMap(([process, member]) => {
    const values = runs.map((run) => run[member]);
    const params = { process, inFlight: AT_ONCE };
    return values.some(Number.isNaN) ? [] : [{ name: 'processor time of a call', params, unit: 'µs' as const, values }];
  });
};
