import { type LoadedSections, Rows, type Sections, columnSections, loadColumns } from './columns.ts';
import { NO_ROW } from './ordered-sets.ts';

/** Many lists of rows in the order in which they were added, each row in at most one of them: what only ever grows at its end. */
export class Chains {
  readonly #first = new Rows();
  readonly #last = new Rows();
  readonly #next = new Rows();

  add(list: number, row: number): void {
    const last = this.#last.get(list);
    if (last === NO_ROW) this.#first.set(list, row);
    else this.#next.set(last, row);
    this.#last.set(list, row);
  }

  /** @param row One that is in the list, to go on after it. */
  *after(list: number, row: number | undefined): Generator<number, void, undefined> {
    let next = row === undefined ? this.#first.get(list) : this.#next.get(row);
    for (; next !== NO_ROW; next = this.#next.get(next)) yield next;
  }

  sections(name: string, lists: number, rows: number): Sections {
    return new Map([
      ...columnSections(name, { first: this.#first, last: this.#last }, lists),
      ...columnSections(name, { next: this.#next }, rows),
    ]);
  }

  load(name: string, sections: LoadedSections): void {
    loadColumns(name, { first: this.#first, last: this.#last, next: this.#next }, sections);
  }
}
