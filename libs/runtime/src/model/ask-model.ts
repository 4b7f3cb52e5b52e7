import { type Result, err, ok } from '@sharedos/contracts';
import type { Timers } from '../timers.ts';
import { untilAborted } from '../until-aborted.ts';
import type { ResolvedAuth } from './model-auth.ts';
import type { ModelQuestion, ModelReply, ModelWire } from './model-wire.ts';

export const REQUEST_TIMEOUT_MS = 120_000;
const ATTEMPTS_MAX = 2;
const ATTEMPT_AGAIN_MS = 1_500;
const UNAUTHORIZED = 401;
const TOO_MANY = 429;

/** A model gave no usable answer. Of what was thrown only this is kept: it may hold prompts and secrets. */
export interface ModelCallFailure {
  /** Of the last refusal; absent where there was no answer, or one that could not be read. */
  readonly status?: number;
  /** Whether it is worth trying again later. */
  readonly transient: boolean;
}

export interface AskedModel {
  readonly outcome: Result<ModelReply, ModelCallFailure>;
  /** Requests sent after the first. */
  readonly resent: number;
}

/**
 * Asks once, and once more 1 500 ms later where nobody answered, or the provider was busy or broken. A credential is renewed once, and
 * only when it was refused. What has begun to answer is not asked again: it may have been paid for.
 *
 * Rejects with the reason of `signal` once that has fired, and with nothing else.
 *
 * @see spec/runtimes.md §4, "Client policy"
 */
export const askModel = async (
  wire: ModelWire,
  auth: ResolvedAuth,
  question: ModelQuestion,
  timers: Timers,
  signal: AbortSignal,
): Promise<AskedModel> => {
  let renewed = false;
  let failed = 0;
  for (let sent = 1; ; sent += 1) {
    const tried = await attempt(wire, auth, question, timers, signal);
    signal.throwIfAborted();
    if (tried.ok) return { outcome: tried, resent: sent - 1 };
    const { answered, status } = tried.error;
    if (status === UNAUTHORIZED && auth.renew !== undefined && !renewed) {
      renewed = true;
      if (await renewal(auth.renew, timers, signal)) continue;
    }
    const transient = !answered && (status === undefined || status === TOO_MANY || status >= 500);
    failed += 1;
    if (!transient || failed >= ATTEMPTS_MAX) {
      return { outcome: err({ transient, ...(status === undefined ? {} : { status }) }), resent: sent - 1 };
    }
    await untilAborted(new Promise<void>((resolve) => timers.after(ATTEMPT_AGAIN_MS, resolve)), signal);
  }
};

interface FailedAttempt {
  /** The provider had accepted the request. */
  readonly answered: boolean;
  readonly status?: number;
}

/** One request with its time limit, which holds until the answer has been read. */
const attempt = async (
  wire: ModelWire,
  auth: ResolvedAuth,
  question: ModelQuestion,
  timers: Timers,
  turn: AbortSignal,
): Promise<Result<ModelReply, FailedAttempt>> =>
  limited(timers, turn, async (signal) => {
    let answered = false;
    try {
      const headers = await untilAborted(auth.headers(signal), signal);
      const response = await untilAborted(wire.send(question, headers, signal), signal);
      answered = true;
      return ok(await untilAborted(wire.read(response), signal));
    } catch (error) {
      const status = answered ? undefined : statusOf(error);
      return err({ answered, ...(status === undefined ? {} : { status }) });
    }
  });

const renewal = (renew: NonNullable<ResolvedAuth['renew']>, timers: Timers, turn: AbortSignal): Promise<boolean> =>
  limited(timers, turn, async (signal) => {
    try {
      await untilAborted(renew(signal), signal);
      return true;
    } catch {
      turn.throwIfAborted();
      return false;
    }
  });

const limited = async <T>(timers: Timers, turn: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const limit = new AbortController();
  const cancel = timers.after(REQUEST_TIMEOUT_MS, () => limit.abort(new Error('the model took too long')));
  try {
    return await work(AbortSignal.any([turn, limit.signal]));
  } finally {
    cancel();
    // Whatever is still open of this request, its connection above all, ends with it.
    limit.abort(new Error('the request is over'));
  }
};

const statusOf = (error: unknown): number | undefined => {
  const status: unknown = typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;
  return typeof status === 'number' ? status : undefined;
};
