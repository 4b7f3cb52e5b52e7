import { Rows } from './columns.ts';

/** No row; every set is named by the row at its root, and the empty one by this. */
export const NO_ROW = 0;

/**
 * Many ordered sets of rows, in two words a row: each row is in at most one set of a forest. A set costs nothing but its rows, so
 * there may be as many sets as rows, and adding, taking out and finding a place take logarithmic time in any order of arrival.
 *
 * Treaps: a row's place between its neighbours is by the order, its height by chance. The chance is seeded in secret, because
 * who chooses names could otherwise choose a shape.
 */
export class OrderedSets {
  /** By row: at `2 * row` the root of what stands before it below it, at `2 * row + 1` of what stands after it. */
  readonly children = new Rows();
  readonly #isBefore: (a: number, b: number) => boolean;
  readonly #heightOf: (row: number) => number;

  /** @param isBefore A strict total order of the rows, which does not change while they are in a set. */
  constructor(heightOf: (row: number) => number, isBefore: (a: number, b: number) => boolean) {
    this.#heightOf = heightOf;
    this.#isBefore = isBefore;
  }

  /** @returns The set's new root. */
  insert(root: number, row: number): number {
    if (root === NO_ROW || this.#heightOf(row) > this.#heightOf(root)) {
      this.#split(root, row);
      return row;
    }
    const side = this.#isBefore(row, root) ? 2 * root : 2 * root + 1;
    this.children.set(side, this.insert(this.children.get(side), row));
    return root;
  }

  /** @returns The set's new root. A row that is not in the set is left out of it. */
  remove(root: number, row: number): number {
    if (root === NO_ROW) return NO_ROW;
    if (root === row) return this.#merged(this.children.get(2 * row), this.children.get(2 * row + 1));
    const side = this.#isBefore(row, root) ? 2 * root : 2 * root + 1;
    this.children.set(side, this.remove(this.children.get(side), row));
    return root;
  }

  /**
   * Rows in order, from the first that is past.
   *
   * @param isPast False for all rows up to some place in the order, true for all after it.
   */
  *ascending(root: number, isPast: (row: number) => boolean): Generator<number, void, undefined> {
    const path: number[] = [];
    for (let row = root; row !== NO_ROW;) {
      const past = isPast(row);
      if (past) path.push(row);
      row = this.children.get(past ? 2 * row : 2 * row + 1);
    }
    for (let row = path.pop(); row !== undefined; row = path.pop()) {
      yield row;
      for (let next = this.children.get(2 * row + 1); next !== NO_ROW; next = this.children.get(2 * next)) path.push(next);
    }
  }

  /** Rows in reverse order, from the last that is not past. */
  *descending(root: number, isPast: (row: number) => boolean): Generator<number, void, undefined> {
    const path: number[] = [];
    for (let row = root; row !== NO_ROW;) {
      const past = isPast(row);
      if (!past) path.push(row);
      row = this.children.get(past ? 2 * row : 2 * row + 1);
    }
    for (let row = path.pop(); row !== undefined; row = path.pop()) {
      yield row;
      for (let next = this.children.get(2 * row); next !== NO_ROW; next = this.children.get(2 * next + 1)) path.push(next);
    }
  }

  /** Parts a set around a row that is not in it, and hangs both parts below the row. */
  #split(root: number, around: number): void {
    let before = 2 * around;
    let after = 2 * around + 1;
    for (let row = root; row !== NO_ROW;) {
      if (this.#isBefore(around, row)) {
        this.children.set(after, row);
        after = 2 * row;
        row = this.children.get(after);
      } else {
        this.children.set(before, row);
        before = 2 * row + 1;
        row = this.children.get(before);
      }
    }
    this.children.set(before, NO_ROW);
    this.children.set(after, NO_ROW);
  }

  /** Joins two sets, all rows of the one before all of the other. */
  #merged(before: number, after: number): number {
    if (before === NO_ROW) return after;
    if (after === NO_ROW) return before;
    if (this.#heightOf(before) > this.#heightOf(after)) {
      this.children.set(2 * before + 1, this.#merged(this.children.get(2 * before + 1), after));
      return before;
    }
    this.children.set(2 * after, this.#merged(before, this.children.get(2 * after)));
    return after;
  }
}

/** Heights by chance: the same for a row as long as the seed is the same. */
export const heightsFrom =
  (seed: number) =>
  (row: number): number => {
    let mixed = Math.imul(row ^ seed, 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x27d4eb2f);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
