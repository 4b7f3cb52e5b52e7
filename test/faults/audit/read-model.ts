import { readFile, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { exportHeader, exportLines } from '@sharedos/client';
import type { AuditEvent, ChainedRecord, SealedHead } from '@sharedos/contracts';

interface Progress {
  /** How far the stream of records was read. */
  readonly position: number;
  /** How far that of heads was. */
  readonly headsPosition: number;
  /** Namespaces whose last record has no signed head yet. */
  readonly unsigned: number;
}

/** The database of one projector, read past it. It may be open there at the same time. */
export class ReadModelFile {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** `undefined` while there is none. */
  progress(): Progress | undefined {
    try {
      return this.#open((database) => {
        const unsigned = `SELECT count(*) FROM namespace WHERE count > coalesce(
          (SELECT max(json_extract(body, '$.head.count')) FROM head WHERE head.namespace = namespace.name), 0)`;
        return database.prepare(`SELECT position, headsPosition, (${unsigned}) AS unsigned FROM state`).get() as unknown as Progress;
      });
    } catch {
      return undefined;
    }
  }

  /** Namespace and id of each record that a query shows, once for each time it is there. */
  shown(): readonly string[] {
    return this.#open((database) =>
      (
        database
          .prepare("SELECT name || ' ' || id AS text FROM record JOIN namespace ON namespace = key WHERE copy = 0 ORDER BY record.sequence")
          .all() as { text: string }[]
      ).map(({ text }) => text),
    );
  }

  /** How many messages of the stream it has, second copies among them. */
  links(): number {
    return this.#open((database) => (database.prepare('SELECT count(*) AS links FROM record').get() as { links: number }).links);
  }

  /** The records of a namespace and the heads on them, as an export. */
  exported(namespaceId: string): readonly string[] {
    return this.#open((database) => {
      const rows = database
        .prepare(
          'SELECT record.count, record.sequence, hex(record.chain) AS chain, body FROM record JOIN namespace ON namespace = key WHERE name = ? ORDER BY record.count',
        )
        .all(namespaceId) as { count: number; sequence: number; chain: string; body: string }[];
      const records = rows.map(({ count, sequence, chain, body }): ChainedRecord => ({
        count,
        sequence,
        chain: chain.toLowerCase(),
        event: JSON.parse(body) as AuditEvent,
      }));
      const heads = (
        database.prepare('SELECT body FROM head WHERE namespace = ? ORDER BY position').all(namespaceId) as { body: string }[]
      ).map(({ body }) => JSON.parse(body) as SealedHead);
      return [exportHeader(namespaceId), ...exportLines({ records, heads })];
    });
  }

  /** Every byte of it, written anew: without what was deleted in it, and in the order of its keys. */
  async bytes(): Promise<Buffer> {
    const copy = `${this.#file}.copy`;
    await rm(copy, { force: true });
    this.#open((database) => database.exec(`VACUUM INTO '${copy}'`));
    return readFile(copy);
  }

  #open<T>(read: (database: DatabaseSync) => T): T {
    const database = new DatabaseSync(this.#file, { readOnly: true });
    try {
      return read(database);
    } finally {
      database.close();
    }
  }
}
