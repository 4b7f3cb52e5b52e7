import type { Position } from '@sharedos/event-store';
import { type LoadedSections, Rows, type Sections, columnSections, loadColumns } from './columns.ts';
import type { GrantTable } from './grant-table.ts';

export interface Change {
  readonly row: number;
  readonly position: Position;
}

/** What happened to grants, in the order of the log. */
export class GrantChanges {
  readonly #table: GrantTable;
  readonly #revoked = new Rows();
  #revocations = 0;

  constructor(table: GrantTable) {
    this.#table = table;
  }

  revoke(row: number): void {
    this.#revoked.set(this.#revocations, row);
    this.#revocations += 1;
  }

  /** Issues and revocations after a position. */
  *after(position: Position): Generator<Change, void, undefined> {
    const table = this.#table;
    const issuedAt = (row: number): Position => (row > table.size ? Infinity : table.issuedPosition(row));
    const revokedAt = (place: number): Position =>
      place >= this.#revocations ? Infinity : table.revokedPosition(this.#revoked.get(place));
    let row = firstAfter(1, table.size + 1, issuedAt, position);
    let place = firstAfter(0, this.#revocations, revokedAt, position);
    while (row <= table.size || place < this.#revocations) {
      if (issuedAt(row) <= revokedAt(place)) {
        yield { row, position: issuedAt(row) };
        row += 1;
      } else {
        yield { row: this.#revoked.get(place), position: revokedAt(place) };
        place += 1;
      }
    }
  }

  sections(): Sections {
    return columnSections('changes', { revoked: this.#revoked }, this.#revocations);
  }

  load(sections: LoadedSections): void {
    loadColumns('changes', { revoked: this.#revoked }, sections);
    this.#revocations = (sections.get('changes.revoked') as Uint8Array).byteLength / Uint32Array.BYTES_PER_ELEMENT;
  }
}

/** The first of places `low` to `high` whose position, which only grows, is after another one. */
const firstAfter = (low: number, high: number, at: (place: number) => Position, position: Position): number => {
  let [from, to] = [low, high];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (at(middle) <= position) from = middle + 1;
    else to = middle;
  }
  return from;
};
