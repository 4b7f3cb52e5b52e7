/** A turn that this process claimed and has not ended. */
export interface RunningTurn {
  readonly turnId: string;
  cancel(): void;
}

/**
 * The turns this process owns right now. Another executor asks it, by turn, before it declares an owner dead; a process that
 * was restarted under the same name owns nothing and says so.
 */
export class RunningTurns {
  readonly #turns = new Map<string, RunningTurn>();

  begin(turn: RunningTurn): void {
    this.#turns.set(turn.turnId, turn);
  }

  end(turnId: string): void {
    this.#turns.delete(turnId);
  }

  has(turnId: string): boolean {
    return this.#turns.has(turnId);
  }

  /** @returns Whether there was such a turn. */
  cancel(turnId: string): boolean {
    const turn = this.#turns.get(turnId);
    turn?.cancel();
    return turn !== undefined;
  }
}
