import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { SCHEMA } from './record-schema.ts';

/** The embedded database: its statements, each prepared once, and its transactions. */
export class RecordDatabase {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  /**
   * @param path A file, or `:memory:`.
   * @param identity Of what is in it; a file of another identity is emptied.
   */
  constructor(path: string, identity: string) {
    this.#database = new DatabaseSync(path);
    // A crash loses at most the end, and the end is read again: nothing here is worth a wait for the disk.
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536');
    this.#database.exec('CREATE TABLE IF NOT EXISTS identity (text TEXT NOT NULL)');
    const found = this.#database.prepare('SELECT text FROM identity').get() as { text: string } | undefined;
    if (found?.text === identity) return;
    this.#database.exec(
      'DROP TABLE IF EXISTS record; DROP TABLE IF EXISTS namespace; DROP TABLE IF EXISTS head; DROP TABLE IF EXISTS state; DELETE FROM identity',
    );
    this.#database.exec(SCHEMA);
    this.#database.prepare('INSERT INTO identity VALUES (?)').run(identity);
  }

  statement(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }

  inTransaction(work: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  close(): void {
    this.#database.close();
  }
}
