import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus, connectBus, followStream, storeAudit, streamInfo } from '@sharedos/bus';
import { connectSharedOS } from '@sharedos/client';
import { type Address, namespaceSubject } from '@sharedos/contracts';
import { type LocalStack, type ServiceProcess, startLocalStack, waitFor } from '@sharedos/testing';
import { ReadModelFile } from '../faults/audit/read-model.ts';
import { linkTime, modelRows } from './audit-model.ts';
import { benchRecord } from './audit-records.ts';
import { ALICE, NAMESPACE } from './bench-system.ts';
import { openLoad } from './open-load.ts';
import { processorMs } from './processor-time.ts';
import { type Row, type RowSpec, median, percentile, rowOf } from './rows.ts';

export interface AuditBenchOptions {
  /** Fewer records and shorter runs: figures to see that it works, not to quote. */
  readonly quick: boolean;
  /** What is being done, line by line. */
  readonly say: (line: string) => void;
}

const PLANS = {
  full: { runs: 5, loadMs: 4_000, records: 1_000_000, sampleMs: 1_000 },
  quick: { runs: 1, loadMs: 1_000, records: 30_000, sampleMs: 200 },
} as const;
type Plan = (typeof PLANS)[keyof typeof PLANS];

const RATE = 5_000;
const ACK_MS = 10_000;
const ARRIVAL_MS = 60_000;
const AUDITOR = { kind: 'human', userId: 'auditor' } as const satisfies Address;
const APART = 'bench-floor';

/** Records on their way to a subscriber, into the proof and into the read model, with the same done bare in the same runs. */
export const benchAudit = async ({ quick, say }: AuditBenchOptions): Promise<readonly Row[]> => {
  const plan = quick ? PLANS.quick : PLANS.full;
  const here = await modelRows(plan.records, plan.runs, plan.sampleMs, say);
  say('starting nats-server, redis-server and an audit-projector …');
  const bench = await startAuditBench();
  try {
    const runs: Run[] = [];
    for (let run = 1; run <= plan.runs; run += 1) {
      say(`${RATE} records a second, ${run} of ${plan.runs} …`);
      runs.push(await oneRun(bench, plan));
    }
    const caughtUp = await headOf(bench.bus);
    await waitFor('the read model', () => bench.model.progress()?.position === caughtUp, ARRIVAL_MS);
    const rebuilds = await rebuildRows(bench, plan, say);
    return [...wireRows(runs, plan), ...here, ...(await growthRows(bench.bus)), ...rebuilds].map(rowOf);
  } finally {
    await bench.stop();
  }
};

interface AuditBench {
  readonly stack: LocalStack;
  readonly folder: string;
  /** With the rights of the projector, which reads the stream of records. */
  readonly bus: Bus;
  /** With those of the executor, which writes records. */
  readonly writer: Bus;
  readonly projector: ServiceProcess;
  readonly model: ReadModelFile;
  stop(): Promise<void>;
}

const startAuditBench = async (): Promise<AuditBench> => {
  const closers: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const close of closers.reverse()) await close();
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), 'sharedos-bench-audit-'));
    closers.push(() => rm(folder, { recursive: true }));
    const principals = [{ namespaceId: NAMESPACE, principal: AUDITOR, auditor: true }];
    const stack = await startLocalStack({ principals, roots: { [NAMESPACE]: [ALICE] } });
    closers.push(stack.stop);
    const connected = async (name: 'audit-projector' | 'tool-executor'): Promise<Bus> => {
      const { user, password, inboxPrefix } = stack.credentials.service(name);
      const bus = await connectBus({ servers: stack.natsUrl, user, pass: password, inboxPrefix, name: `bench/${name}` });
      closers.push(() => bus.close());
      return bus;
    };
    const projector = await startProjector(stack, folder, 'live');
    const model = new ReadModelFile(fileOf(folder, 'live'));
    return { stack, folder, bus: await connected('audit-projector'), writer: await connected('tool-executor'), projector, model, stop };
  } catch (error) {
    await stop();
    throw error;
  }
};

const fileOf = (folder: string, name: string): string => join(folder, `${name}.db`);
const startProjector = (stack: LocalStack, folder: string, name: string): Promise<ServiceProcess> =>
  stack.startService('audit-projector', { env: { SHAREDOS_RECORDS_DB: fileOf(folder, name), SHAREDOS_RECORDS_MAX: '10000000' } });

type Run = Awaited<ReturnType<typeof oneRun>>;

const oneRun = async (bench: AuditBench, plan: Plan) => {
  const bare = await bareMessages(bench, plan.loadMs);
  const processes = { projector: bench.projector.pid, broker: bench.stack.nats.pid };
  const before = { projector: await processorMs(processes.projector), broker: await processorMs(processes.broker) };
  const recorded = await recordsToSubscriber(bench, plan.loadMs);
  const after = { projector: await processorMs(processes.projector), broker: await processorMs(processes.broker) };
  const perRecord = (process: keyof typeof after): number => ((after[process] - before[process]) * 1_000) / recorded.length;
  return {
    bare50: median(bare),
    bare99: percentile(bare, 99),
    seen50: median(recorded),
    seen99: percentile(recorded, 99),
    projector: perRecord('projector'),
    broker: perRecord('broker'),
    link: linkTime(),
  };
};

/** From the writing of a record to the SDK's subscriber, in microseconds, at the rate. */
const recordsToSubscriber = async ({ stack, writer, bus, model }: AuditBench, loadMs: number): Promise<readonly number[]> => {
  const { user, password } = stack.credentials.principal(NAMESPACE, AUDITOR);
  const client = await connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId: NAMESPACE, principal: AUDITOR });
  const sent = new Map<string, number>();
  const taken: number[] = [];
  try {
    const tail = await client.audit.tail({
      onRecord: ({ id }) => {
        const at = sent.get(id);
        if (at !== undefined) taken.push((performance.now() - at) * 1_000);
      },
      onGap: () => undefined,
    });
    if (!tail.ok) throw new Error('the auditor may not listen');
    const write = storeAudit(writer, ACK_MS, (_, why) => {
      throw new Error(`a record was not stored: ${why}`);
    });
    const acks: Promise<unknown>[] = [];
    const count = await openLoad(RATE, loadMs, (number) => {
      const record = benchRecord(number);
      sent.set(record.id, performance.now());
      acks.push(write(record));
    });
    await Promise.all(acks);
    await waitFor('every record', () => taken.length >= count, ARRIVAL_MS);
    await tail.value.stop();
    // What the projector does for them belongs to them.
    const head = await headOf(bus);
    await waitFor('the read model', () => (model.progress()?.position ?? 0) >= head, ARRIVAL_MS);
    return taken;
  } finally {
    await client.close();
  }
};

/** The same rate of messages as large, straight from one connection to another. */
const bareMessages = async ({ stack, writer }: AuditBench, loadMs: number): Promise<readonly number[]> => {
  const { user, password, inboxPrefix } = stack.credentials.service('tool-executor');
  const listener = await connectBus({ servers: stack.natsUrl, user, pass: password, inboxPrefix, name: 'bench/listener' });
  const subject = namespaceSubject('execution.control', APART, 'bare');
  const body = JSON.stringify(benchRecord(0));
  const sent: number[] = [];
  const taken: number[] = [];
  try {
    const listening = await listener.subscribe(subject, () => taken.push((performance.now() - (sent[taken.length] ?? NaN)) * 1_000), {
      timeoutMs: ACK_MS,
    });
    if (!listening.ok) throw new Error(listening.error.reason);
    const count = await openLoad(RATE, loadMs, () => {
      sent.push(performance.now());
      writer.nats.publish(subject, body);
    });
    await waitFor('every message', () => taken.length >= count, ARRIVAL_MS);
    return taken;
  } finally {
    await listener.close();
  }
};

const headOf = async (bus: Bus): Promise<number> => (await auditStream(bus)).last_seq;

const auditStream = async (bus: Bus) => {
  const info = await streamInfo(bus, 'AUDIT', { timeoutMs: ACK_MS });
  if (!info.ok) throw new Error(info.error.reason);
  return info.value.state;
};

const wireRows = (runs: readonly Run[], { loadMs }: Plan): readonly RowSpec[] => {
  const params = { perSecond: RATE, ms: loadMs };
  const each = (figure: (run: Run) => number): readonly number[] => runs.map(figure);
  const seconds = (figure: (run: Run) => number): readonly number[] => runs.map((run) => figure(run) / 1_000_000);
  const cost = each(({ projector, broker }) => projector + broker);
  return [
    { name: 'floor: bare message to a subscriber, p50', params, unit: 's', values: seconds((run) => run.bare50) },
    { name: 'floor: bare message to a subscriber, p99', params, unit: 's', values: seconds((run) => run.bare99) },
    { name: 'record to subscriber, p50', params, unit: 's', values: seconds((run) => run.seen50), floors: seconds((run) => run.bare50) },
    {
      name: 'record to subscriber, p99',
      params,
      unit: 's',
      values: seconds((run) => run.seen99),
      floors: seconds((run) => run.bare99),
      target: 0.05,
    },
    { name: 'processor time of a record, audit-projector', unit: 'µs', values: each((run) => run.projector) },
    { name: 'processor time of a record, nats-server', unit: 'µs', values: each((run) => run.broker) },
    {
      name: 'link of the chain, of the processor time of a record',
      unit: 'µs',
      values: each((run) => run.link),
      floors: cost,
      target: 0.05,
    },
  ];
};

const growthRows = async (bus: Bus): Promise<readonly RowSpec[]> => {
  const { bytes, messages } = await auditStream(bus);
  return [{ name: 'stream of records on disk, a record', params: { records: messages }, unit: 'B', values: [bytes / messages] }];
};

/** A projector that starts with nothing, against reading the stream and doing nothing with it. */
const rebuildRows = async (bench: AuditBench, { runs }: Plan, say: (line: string) => void): Promise<readonly RowSpec[]> => {
  const head = await headOf(bench.bus);
  const rates = { read: [] as number[], rebuilt: [] as number[] };
  for (let run = 1; run <= runs; run += 1) {
    say(`rebuilding from ${head} records, ${run} of ${runs} …`);
    rates.read.push(await readRate(bench.bus, head));
    const name = `rebuilt-${run}`;
    const model = new ReadModelFile(fileOf(bench.folder, name));
    const starting = startProjector(bench.stack, bench.folder, name);
    const first = await waitFor('the first records', () => sinceFirst(model), ARRIVAL_MS);
    await waitFor('the read model', () => (model.progress()?.position ?? 0) >= head, ARRIVAL_MS * 10);
    rates.rebuilt.push((head - first.position) / ((performance.now() - first.at) / 1_000));
    await (await starting).stop();
  }
  const params = { records: head };
  return [
    { name: 'floor: records read from the stream', params, unit: '1/s', values: rates.read },
    { name: 'records of a rebuild', params, unit: '1/s', values: rates.rebuilt, floors: rates.read },
  ];
};

const sinceFirst = (model: ReadModelFile): { readonly position: number; readonly at: number } | undefined => {
  const position = model.progress()?.position ?? 0;
  return position === 0 ? undefined : { position, at: performance.now() };
};

const readRate = async (bus: Bus, head: number): Promise<number> => {
  const { promise: read, resolve, reject } = Promise.withResolvers<void>();
  const begun = performance.now();
  const feed = followStream(bus, {
    stream: 'AUDIT',
    fromSequence: 1,
    onMessage: ({ sequence }) => void (sequence >= head && resolve()),
    onAlive: () => undefined,
    onDefect: reject,
  });
  try {
    await read;
    return head / ((performance.now() - begun) / 1_000);
  } finally {
    await feed.stop();
  }
};
