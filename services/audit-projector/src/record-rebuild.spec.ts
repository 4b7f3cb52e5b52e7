import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { NOON, recordOf, recordStore, sealKeys } from './record.fixture.ts';
import type { RecordStore, StoredAudit } from './record-store.ts';

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

/** Every byte of a database, written anew: without what was deleted in it, and in the order of its keys. */
const bytesOf = async (file: string): Promise<string> => {
  const copy = `${file}.copy`;
  const database = new DatabaseSync(file, { readOnly: true });
  database.exec(`VACUUM INTO '${copy}'`);
  database.close();
  return (await readFile(copy)).toString('base64');
};

/** Three namespaces in one stream; every seventh record is one that was stored before, under its id. */
const stream: readonly StoredAudit[] = Array.from({ length: RECORDS }, (_, index) => ({
  sequence: index + 1,
  event: recordOf(index % 7 === 6 ? `record-${index - 3}` : `record-${index}`, {
    namespaceId: `w${index % 3}`,
    traceId: `trace-${index % 40}`,
  }),
}));

/** Heads on what has been folded by then; each replica reads them as they come, which is not when another does. */
const keys = sealKeys();
const head = (position: number) => {
  const namespaceId = `w${(position + 1) % 3}`;
  return keys.seal({ version: '1', namespaceId, count: position, sequence: 3 * position, chain: 'ab'.repeat(32), at: NOON });
};
const HEADS = 12;
const keepHeads = (store: RecordStore, upTo: number): void => {
  for (let position = store.headsPosition + 1; position <= upTo; position += 1) store.keepHead(head(position), position);
};

/** Folds as a process does that is interrupted again and again. */
const foldInterrupted = async (recordsMax: number): Promise<string> => {
  const live = await newFile();
  const every = Math.ceil(RECORDS / DROPS);
  let store = recordStore(recordsMax, live);
  for (let from = 0, batch = 1; from < RECORDS; from += batch, batch = (batch % 3) + 1) {
    store.append(stream.slice(from, from + batch), Math.min(RECORDS, from + batch));
    keepHeads(store, Math.floor((HEADS * from) / RECORDS));
    // The connection drops: what was delivered and not acknowledged comes again, in other portions, to a process that may be a new one.
    if (from % every < batch) {
      store.append(stream.slice(Math.max(0, from - 20), from + 1), from + 1);
      if (from % 2 === 0) {
        store.close();
        store = recordStore(recordsMax, live);
      }
    }
  }
  keepHeads(store, HEADS);
  store.close();
  return live;
};

/** Folds from the beginning at once, with the heads before all records. */
const rebuild = async (recordsMax: number): Promise<string> => {
  const rebuilt = await newFile();
  const store = recordStore(recordsMax, rebuilt);
  keepHeads(store, HEADS);
  for (let from = 0; from < RECORDS; from += 512) store.append(stream.slice(from, from + 512), Math.min(RECORDS, from + 512));
  store.close();
  return rebuilt;
};

const idsIn = (file: string): readonly string[] => {
  const store = recordStore(RECORDS, file);
  const ids = ['w0', 'w1', 'w2'].flatMap((namespaceId) =>
    store.query(namespaceId, {}, { after: 0, limit: RECORDS }).records.map(({ event }) => `${namespaceId} ${event.id}`),
  );
  store.close();
  return ids;
};

describe('a read model that was interrupted', () => {
  it('is byte for byte the one that a rebuild makes, with no record missing or doubled', { timeout: 60_000 }, async () => {
    const [live, rebuilt] = [await foldInterrupted(RECORDS), await rebuild(RECORDS)];
    expect((await bytesOf(live)) === (await bytesOf(rebuilt))).toBe(true);
    const ids = idsIn(rebuilt);
    expect(ids).toHaveLength(new Set(stream.map(({ event }) => `${event.namespaceId} ${event.id}`)).size);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each([3, 4, 5, 6])('is so, too, when it holds the newest of them alone, one in %i', { timeout: 60_000 }, async (part) => {
    const recordsMax = Math.floor(RECORDS / 3 / part);
    const [live, rebuilt] = [await foldInterrupted(recordsMax), await rebuild(recordsMax)];
    expect((await bytesOf(live)) === (await bytesOf(rebuilt))).toBe(true);
    const held = idsIn(rebuilt).length;
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(RECORDS / 2);
  });
});
