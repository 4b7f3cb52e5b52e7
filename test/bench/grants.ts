import { randomUUID } from 'node:crypto';
import { storeAudit } from '@sharedos/bus';
import { type Authority, askAuthority } from './authority.ts';
import { ALICE, type BenchSystem, startBenchSystem } from './bench-system.ts';
import { type Floors, startFloors } from './floors.ts';
import { foldRows, heldRows, treeRows } from './grants-fold.ts';
import { type Row, type RowSpec, median, rowOf } from './rows.ts';
import { inFlight, oneByOne } from './sampling.ts';

export interface GrantsBenchOptions {
  /** Fewer grants and shorter runs: figures to see that it works, not to quote. */
  readonly quick: boolean;
  /** What is being done, line by line. */
  readonly say: (line: string) => void;
}

const PLANS = {
  full: { grants: 1_000_000, runs: 3, sampleMs: 1_500, rateMs: 2_500 },
  quick: { grants: 50_000, runs: 1, sampleMs: 200, rateMs: 300 },
} as const;
const AT_ONCE = 64;
const DEADLINE_MS = 5_000;

/** The fold of very many grants, what openings and decisions on it take, and both over the wire. */
export const benchGrants = async ({ quick, say }: GrantsBenchOptions): Promise<readonly Row[]> => {
  const plan = quick ? PLANS.quick : PLANS.full;
  const here = [...(await foldRows(plan.grants, plan.runs, say)), ...heldRows(plan.runs, say), ...treeRows(plan.runs)];
  const bench = await startBenchSystem(say);
  try {
    const authority = await askAuthority(bench, ALICE);
    const floors = await startFloors(bench, { ...(await authority.bytes()), record: 1_024 });
    try {
      const runs: Wire[] = [];
      for (let run = 1; run <= plan.runs; run += 1) {
        say(`over the wire, ${run} of ${plan.runs} …`);
        runs.push(await oneRun(bench, authority, floors, plan));
      }
      return [...here, ...wireRows(runs)].map(rowOf);
    } finally {
      await floors.stop();
      await authority.close();
    }
  } finally {
    await bench.stop();
  }
};

type Wire = Awaited<ReturnType<typeof oneRun>>;

const oneRun = async (
  { bus }: BenchSystem,
  authority: Authority,
  floors: Floors,
  { sampleMs, rateMs }: { sampleMs: number; rateMs: number },
) => {
  const p50 = async (work: () => Promise<unknown>): Promise<number> => median(await oneByOne(sampleMs, work));
  const audit = storeAudit(bus, DEADLINE_MS, () => undefined);
  /** As a caller outside a turn has it: the decision counts once its record is stored. */
  const recorded = async (): Promise<void> => {
    const { audit: records } = await authority.decide();
    for (const record of records.slice(-1))
      if (!(await audit({ ...record, id: randomUUID() })).ok) throw new Error('a record was not stored');
  };
  return {
    request: await p50(floors.request),
    publish: await p50(floors.publish),
    barrier: await p50(authority.barrier),
    open: await p50(authority.open),
    recorded: await p50(recorded),
    discarding: await p50(authority.decide),
    recordedAtOnce: await inFlight(rateMs, AT_ONCE, recorded),
    discardingAtOnce: await inFlight(rateMs, AT_ONCE, authority.decide),
    requestsAtOnce: await inFlight(rateMs, AT_ONCE, floors.request),
  };
};

const wireRows = (runs: readonly Wire[]): readonly RowSpec[] => {
  const each = (figure: (run: Wire) => number): readonly number[] => runs.map(figure);
  const [µs, rate] = [{ unit: 'µs' } as const, { unit: '1/s', params: { inFlight: AT_ONCE } } as const];
  const request = each((run) => run.request);
  return [
    { name: 'floor: request', ...µs, values: request },
    { name: 'floor: publish with ack', ...µs, values: each((run) => run.publish) },
    { name: 'floor: barrier', ...µs, values: each((run) => run.barrier) },
    { name: 'opening a turn', ...µs, values: each((run) => run.open), floors: each((run) => run.barrier), target: 1.5 },
    {
      name: 'decision over NATS, its record stored',
      ...µs,
      values: each((run) => run.recorded),
      floors: each((run) => run.request + run.publish),
      target: 1.2,
    },
    { name: 'decisions over NATS, their records stored', ...rate, values: each((run) => run.recordedAtOnce), target: 25_000 },
    { name: 'decision over NATS, its record discarded', ...µs, values: each((run) => run.discarding), floors: request, target: 1.2 },
    {
      name: 'decisions over NATS, their records discarded',
      ...rate,
      values: each((run) => run.discardingAtOnce),
      floors: each((run) => run.requestsAtOnce),
    },
  ];
};
