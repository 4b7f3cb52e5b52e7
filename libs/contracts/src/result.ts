/** An outcome as a value. A refusal is data; only a broken assumption is thrown. */
export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

export const ok = <T>(value: T): Result<T, never> => ({ ok: true, value });
export const err = <E>(error: E): Result<never, E> => ({ ok: false, error });

/**
 * "We could not find out": nothing ran and nothing was refused by a rule. Counted apart from denials.
 * `reason` is for operators; it never reaches a caller.
 */
export interface Unavailable {
  readonly kind: 'unavailable';
  readonly reason: string;
}

export const unavailable = (reason: string): Result<never, Unavailable> => err({ kind: 'unavailable', reason });
