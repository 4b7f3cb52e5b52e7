/** Lets callers through while open; while closed they wait. */
export class Gate {
  #closed: PromiseWithResolvers<void> | undefined;

  close(): void {
    this.#closed ??= Promise.withResolvers();
  }

  open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Resolves when the gate is open, however often it was closed meanwhile. */
  async passed(): Promise<void> {
    while (this.#closed !== undefined) await this.#closed.promise;
  }
}

/** What goes wrong on purpose. Nothing does until it is said. */
export class Faults {
  /** While closed the server answers nothing; what was sent to it is kept, and done when the gate opens. */
  readonly serving = new Gate();
  /** While closed appends wait to be stored, whether or not their callers still do. */
  readonly appending = new Gate();
  /** While closed subscriptions stay connected and are sent nothing; everything else goes on. */
  readonly subscribing = new Gate();
  /** So many of the next appends are stored, and their answers lost. */
  answersToLose = 0;
  /** So many of the next appends are answered as stored, and are not. */
  appendsToInvent = 0;
  /** Each event of a subscription is sent twice. */
  deliversTwice = false;
  /** Calls that require the leader are refused; with the address of the leader when there is one. */
  leaderElsewhere: 'unknown' | { readonly host: string; readonly port: number } | undefined;
  readonly #cuts = new Set<() => void>();

  /** Ends every subscription with an error, as a server does that loses its leadership. */
  cutSubscriptions(): void {
    for (const cut of this.#cuts) cut();
  }

  /** Calls `cut` when subscriptions are cut. @returns What ends that. */
  onCut(cut: () => void): () => void {
    this.#cuts.add(cut);
    return () => void this.#cuts.delete(cut);
  }
}
