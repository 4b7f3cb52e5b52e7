export interface BuildProgressOptions {
  /** How far records are folded, as a place in their stream. */
  readonly position: () => number;
  /** Where the stream ended when the process started. */
  readonly upTo: number;
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Milliseconds between two lines of the log. */
  readonly everyMs?: number;
}

const EVERY_MS = 2_000;

/**
 * How far a read model is that is being built from the stream, until it has all that was there when the process started: for the log,
 * for readiness, and for whoever asks meanwhile. A model that was kept has little or nothing to read, and says nothing.
 */
export class BuildProgress {
  readonly #options: BuildProgressOptions;
  readonly #from: number;
  readonly #begun = performance.now();
  #told: number;
  #isBuilt: boolean;

  constructor(options: BuildProgressOptions) {
    this.#options = options;
    this.#from = options.position();
    this.#told = this.#begun;
    this.#isBuilt = this.#from >= options.upTo;
    if (!this.#isBuilt) options.log('building the read model', this.#state());
  }

  /** What is missing, in words, or `undefined` once the model was built. */
  get missing(): string | undefined {
    if (this.#isBuilt) return undefined;
    const { position, of, percent } = this.#state();
    return `the read model is being built: ${position} of ${of} records, ${percent} %`;
  }

  /** More was folded. */
  folded(): void {
    if (this.#isBuilt) return;
    const now = performance.now();
    if (this.#options.position() >= this.#options.upTo) {
      this.#isBuilt = true;
      const seconds = Number(((now - this.#begun) / 1_000).toFixed(1));
      this.#options.log('the read model is built', { records: this.#options.upTo - this.#from, seconds });
    } else if (now - this.#told >= (this.#options.everyMs ?? EVERY_MS)) {
      this.#told = now;
      this.#options.log('building the read model', this.#state());
    }
  }

  #state(): { readonly position: number; readonly of: number; readonly percent: number } {
    const { position, upTo } = this.#options;
    return { position: position(), of: upTo, percent: Math.floor((100 * position()) / upTo) };
  }
}
