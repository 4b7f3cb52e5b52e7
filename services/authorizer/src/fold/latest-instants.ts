import type { Instant } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';

export interface SavedInstants {
  readonly positions: readonly Position[];
  readonly instants: readonly Instant[];
  readonly oldest: Position;
}

/** The greatest `at` of any event so far, noted wherever it grew: positions ascending, instants ascending. */
export class LatestInstants {
  #positions: number[] = [];
  #instants: number[] = [];
  #oldest: Position = 0;

  /** The position below which something was forgotten. */
  get oldest(): Position {
    return this.#oldest;
  }

  note(at: Instant, position: Position): void {
    if (at <= (this.#instants.at(-1) ?? -Infinity)) return;
    this.#positions.push(position);
    this.#instants.push(at);
  }

  /** The greatest `at` of any event at or below a position. Of a position that was forgotten, that of a later one or 0. */
  upTo(position: Position): Instant {
    return this.#instants[firstAbove(this.#positions, position) - 1] ?? 0;
  }

  /** The last position noted at or before an instant: every event after it, and no event before it, may be later. */
  lastAt(instant: Instant): Position {
    return this.#positions[firstAbove(this.#instants, instant) - 1] ?? 0;
  }

  /** Forgets what is only needed to answer below a position. */
  forget(below: Position): void {
    this.#oldest = Math.max(this.#oldest, below);
    const kept = firstAbove(this.#positions, below) - 1;
    if (kept <= 0) return;
    this.#positions = this.#positions.slice(kept);
    this.#instants = this.#instants.slice(kept);
  }

  save(): SavedInstants {
    return { positions: [...this.#positions], instants: [...this.#instants], oldest: this.#oldest };
  }

  load({ positions, instants, oldest }: SavedInstants): void {
    this.#positions = [...positions];
    this.#instants = [...instants];
    this.#oldest = oldest;
  }
}

/** Where in ascending numbers the first one above `bound` stands. */
const firstAbove = (numbers: readonly number[], bound: number): number => {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] as number) <= bound) low = middle + 1;
    else high = middle;
  }
  return low;
};
