import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { recordOf, recordStore } from './record.fixture.ts';
import type { StoredAudit } from './record-store.ts';

/** Of the life of a read model; ten thousand and fifty by hand. */
const RECORDS = Number(process.env['SHAREDOS_FOLDED_RECORDS'] ?? 1_000);
const DROPS = Number(process.env['SHAREDOS_FOLDED_DROPS'] ?? 50);

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});
const newFile = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'records-'));
  folders.push(folder);
  return join(folder, 'records.db');
};

/** Every row of every table, as it is stored. */
const dumpOf = (file: string): Readonly<Record<string, unknown>> => {
  const database = new DatabaseSync(file, { readOnly: true });
  const tables = ['identity', 'state', 'namespace', 'record', 'head'];
  const dump = Object.fromEntries(tables.map((table) => [table, database.prepare(`SELECT * FROM ${table} ORDER BY 1`).all()]));
  database.close();
  return dump as Readonly<Record<string, unknown>>;
};

/** Three namespaces in one stream; every seventh record is one that was stored before, under its id. */
const stream: readonly StoredAudit[] = Array.from({ length: RECORDS }, (_, index) => ({
  sequence: index + 1,
  event: recordOf(index % 7 === 6 ? `record-${index - 3}` : `record-${index}`, {
    namespaceId: `w${index % 3}`,
    traceId: `trace-${index % 40}`,
  }),
}));

describe('a read model that was interrupted', () => {
  it('is row by row the one that a rebuild makes, with no record missing or doubled', { timeout: 60_000 }, async () => {
    const live = await newFile();
    const every = Math.ceil(RECORDS / DROPS);
    let store = recordStore(RECORDS, live);
    for (let from = 0, batch = 1; from < RECORDS; from += batch, batch = (batch % 13) + 1) {
      store.append(stream.slice(from, from + batch), Math.min(RECORDS, from + batch));
      // The connection drops: what was delivered and not acknowledged comes again, in other portions, to a process that may be a new one.
      if (from % every < batch) {
        store.append(stream.slice(Math.max(0, from - 20), from + 1), from + 1);
        if (from % 2 === 0) {
          store.close();
          store = recordStore(RECORDS, live);
        }
      }
    }
    store.close();
    const rebuilt = await newFile();
    const again = recordStore(RECORDS, rebuilt);
    for (let from = 0; from < RECORDS; from += 512) again.append(stream.slice(from, from + 512), Math.min(RECORDS, from + 512));
    const ids = ['w0', 'w1', 'w2'].flatMap((namespaceId) =>
      again.query(namespaceId, {}, { after: 0, limit: RECORDS }).records.map(({ event }) => `${namespaceId} ${event.id}`),
    );
    again.close();
    expect(dumpOf(live)).toEqual(dumpOf(rebuilt));
    expect(ids).toHaveLength(new Set(stream.map(({ event }) => `${event.namespaceId} ${event.id}`)).size);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
