import type { Position } from '@sharedos/event-store';

/** What one thing was, from which position of the log on: how "at revision R" is answered without reading the log. */
export class History<State> {
  /** Ascending. */
  readonly #positions: Position[] = [];
  readonly #states: State[] = [];

  /** The state after the last event so far. */
  get last(): State | undefined {
    return this.#states.at(-1);
  }

  /** Of the last event so far. */
  get lastPosition(): Position {
    return this.#positions.at(-1) ?? 0;
  }

  /** The state after every event at or below a position; `undefined` before the first. */
  at(position: Position): State | undefined {
    return this.#states[this.#indexAt(position)];
  }

  add(position: Position, state: State): void {
    // Events of one append may share a position; whoever asks about it sees all of them.
    if (this.#positions.at(-1) === position) this.#states[this.#states.length - 1] = state;
    else {
      this.#positions.push(position);
      this.#states.push(state);
    }
  }

  /** Drops what no position at or above `below` is answered from. */
  forget(below: Position): void {
    const first = this.#indexAt(below);
    if (first <= 0) return;
    this.#positions.splice(0, first);
    this.#states.splice(0, first);
  }

  entries(): readonly (readonly [Position, State])[] {
    return this.#positions.map((position, index) => [position, this.#states[index] as State]);
  }

  /** Of the last entry at or below a position, -1 when there is none. */
  #indexAt(position: Position): number {
    let low = 0;
    let high = this.#positions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#positions[middle] as Position) <= position) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
