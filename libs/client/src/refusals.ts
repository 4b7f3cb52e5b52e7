import { type ProtocolError, type Result, type Unavailable, ok, principalSubject } from '@sharedos/contracts';
import type { Session } from './session.ts';
import { refusalIn } from './turn-answer.ts';

const REMEMBERED_MAX = 256;

/**
 * Refusals of requests that never became turns, by their place in the queue: one subscription for all requests of a session.
 *
 * A refusal may arrive before the acknowledgement that tells us the place, so the last few are remembered.
 */
export class Refusals {
  readonly #session: Session;
  readonly #waiting = new Map<number, (error: ProtocolError) => void>();
  readonly #remembered = new Map<number, ProtocolError>();
  #listening: Promise<Result<unknown, Unavailable>> | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Resolves once no refusal can be missed. */
  async listen(): Promise<Result<void, Unavailable>> {
    this.#listening ??= this.#subscribe();
    const listening = await this.#listening;
    if (listening.ok) return ok(undefined);
    this.#listening = undefined;
    return listening;
  }

  /** Calls `onRefused` when the request at this place is refused. @returns A function that stops waiting. */
  await(sequence: number, onRefused: (error: ProtocolError) => void): () => void {
    const known = this.#remembered.get(sequence);
    if (known !== undefined) onRefused(known);
    else this.#waiting.set(sequence, onRefused);
    return () => this.#waiting.delete(sequence);
  }

  #subscribe(): Promise<Result<unknown, Unavailable>> {
    const { bus, namespaceId, principal, requestTimeoutMs } = this.#session;
    return bus.subscribe(
      `${principalSubject('turn.refused', namespaceId, principal)}.>`,
      (message) => {
        const refusal = refusalIn(message);
        if (refusal !== undefined) this.#arrived(refusal.sequence, refusal.error);
      },
      { timeoutMs: requestTimeoutMs },
    );
  }

  #arrived(sequence: number, error: ProtocolError): void {
    const onRefused = this.#waiting.get(sequence);
    if (onRefused !== undefined) {
      this.#waiting.delete(sequence);
      onRefused(error);
      return;
    }
    this.#remembered.set(sequence, error);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > REMEMBERED_MAX && oldest !== undefined) this.#remembered.delete(oldest);
  }
}
