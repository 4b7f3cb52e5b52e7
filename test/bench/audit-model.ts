import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { chainAfter, chainStart } from '@sharedos/contracts';
import { RecordStore } from '../../services/audit-projector/src/record-store.ts';
import { RECORDS_A_TURN, benchRecord, traceOf } from './audit-records.ts';
import { NAMESPACE } from './bench-system.ts';
import { type RowSpec, median, percentile } from './rows.ts';
import { oneByOne } from './sampling.ts';

const BATCH = 512;
const SECOND_µS = 1_000_000;
const CHAINED = 2_000;

/** The read model by itself: a database of so many records, looked up by trace, and what it is on disk. Starts no server. */
export const modelRows = async (
  records: number,
  runs: number,
  sampleMs: number,
  say: (line: string) => void,
): Promise<readonly RowSpec[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-bench-audit-'));
  try {
    say(`folding ${records} records into a read model …`);
    const file = join(folder, 'records.db');
    const store = new RecordStore(file, { streamId: 'bench', recordsMax: records });
    const begun = performance.now();
    for (let from = 0; from < records; from += BATCH) {
      const due = Array.from({ length: Math.min(BATCH, records - from) }, (_, index) => ({
        sequence: from + index + 1,
        event: benchRecord(from + index),
      }));
      store.append(due, from + due.length);
    }
    const folded = records / ((performance.now() - begun) / 1_000);
    const bare = new DatabaseSync(file, { readOnly: true });
    const rows = bare.prepare(`SELECT body FROM record WHERE sequence > ? ORDER BY sequence LIMIT ${RECORDS_A_TURN}`);
    const turn = (): number => Math.floor(Math.random() * (records / RECORDS_A_TURN));
    const found = { p50: [] as number[], p99: [] as number[], floor: [] as number[] };
    for (let run = 1; run <= runs; run += 1) {
      say(`looking up traces, ${run} of ${runs} …`);
      found.floor.push(percentile(await oneByOne(sampleMs, async () => rows.all(turn() * RECORDS_A_TURN)), 99));
      const taken = await oneByOne(sampleMs, async () => lookUp(store, traceOf(turn())));
      found.p50.push(median(taken));
      found.p99.push(percentile(taken, 99));
    }
    bare.close();
    store.close();
    const { size } = await stat(file);
    const params = { records, found: RECORDS_A_TURN };
    const seconds = (figures: readonly number[]): readonly number[] => figures.map((figure) => figure / SECOND_µS);
    return [
      { name: 'floor: as many rows by their key, p99', params, unit: 's', values: seconds(found.floor) },
      { name: 'query by trace, p50', params, unit: 's', values: seconds(found.p50) },
      { name: 'query by trace, p99', params, unit: 's', values: seconds(found.p99), floors: seconds(found.floor), target: 0.01 },
      { name: 'read model on disk, a record', params: { records }, unit: 'B', values: [size / records] },
      { name: 'records folded in process', params: { records }, unit: '1/s', values: [folded] },
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
};

const lookUp = (store: RecordStore, traceId: string): void => {
  const { length } = store.query(NAMESPACE, { traceId }, { after: 0, limit: 100 }).records;
  if (length !== RECORDS_A_TURN) throw new Error(`${length} records of a trace that has ${RECORDS_A_TURN}`);
};

/** The processor time of one link of the chain, in microseconds. */
export const linkTime = (): number => {
  const records = Array.from({ length: CHAINED }, (_, number) => benchRecord(number));
  let chain = chainStart(NAMESPACE);
  const taken: number[] = [];
  for (let pass = 0; pass < 15; pass += 1) {
    const begun = process.cpuUsage();
    for (const [index, record] of records.entries()) chain = chainAfter(chain, index + 1, record);
    const { user, system } = process.cpuUsage(begun);
    taken.push((user + system) / CHAINED);
  }
  return median(taken);
};
