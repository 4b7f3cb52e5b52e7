import { closeSync, existsSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Journal } from './event-log.ts';
import type { StoredEvent } from './stored-event.ts';

/** Keeps nothing: the log is gone with the process. */
export const noJournal: Journal = { write: () => undefined };

type Written = Omit<StoredEvent, 'data' | 'metadata'> & { readonly data: string; readonly metadata: string };

/**
 * A log kept in one file, one line for each append, handed to the system before the append is answered:
 * it survives this process, however that ends, though not the machine.
 */
export interface FileJournal extends Journal {
  readonly history: readonly StoredEvent[];
  close(): void;
}

export const openJournal = (folder: string): FileJournal => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, 'journal.ndjson');
  const history = existsSync(path) ? readHistory(path) : [];
  const file = openSync(path, 'a', 0o600);
  return {
    history,
    write: (events) => {
      if (events.length === 0) return;
      const lines = events.map((event): Written => ({
        ...event,
        data: event.data.toString('base64'),
        metadata: event.metadata.toString('base64'),
      }));
      writeSync(file, `${JSON.stringify(lines)}\n`);
    },
    close: () => closeSync(file),
  };
};

/** A process that was killed may leave half of a line. Nobody was told of it, so it goes. */
const readHistory = (path: string): readonly StoredEvent[] => {
  const bytes = readFileSync(path);
  const whole = bytes.lastIndexOf('\n') + 1;
  if (whole < bytes.byteLength) truncateSync(path, whole);
  return bytes
    .toString('utf8', 0, whole)
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => JSON.parse(line) as readonly Written[])
    .map((event) => ({ ...event, data: Buffer.from(event.data, 'base64'), metadata: Buffer.from(event.metadata, 'base64') }));
};
