import type { BusSubscription, StoreRefusal } from '@sharedos/bus';
import {
  type Address,
  type ExecutionEvent,
  type ExecutionResult,
  type Result,
  type TimelineEntry,
  TurnCancel,
  TurnCancelReply,
  TurnGet,
  TurnGetReply,
  TurnList,
  TurnListReply,
  TurnRequest,
  type TurnSummary,
  err,
  ok,
  principalSubject,
  unavailable,
} from '@sharedos/contracts';
import { ATTRIBUTE, SPAN, SpanKind, withSpan } from '@sharedos/telemetry';
import { CLIENT_CODES, type ClientError, refused } from './client-error.ts';
import { Refusals } from './refusals.ts';
import { type Session, ask, checkedBody } from './session.ts';
import { type TurnAnswer, answerIn, eventIn } from './turn-answer.ts';

export type { TurnAnswer };

export interface SubmitOptions {
  readonly onEvent?: (event: ExecutionEvent) => void;
  /** How long `result` waits, queue included. */
  readonly resultTimeoutMs?: number;
}

export interface TurnWatcher {
  readonly executionId: string;
  /** The one terminal answer. `unavailable` when it did not come in time: ask again with `get`, the turn goes on. */
  readonly result: Promise<Result<TurnAnswer, ClientError>>;
  /** Stops listening; the turn goes on. `result` is then `unavailable`. */
  stop(): Promise<void>;
}

export interface SubmittedTurn extends TurnWatcher {
  /** The place of the request in the work queue. */
  readonly sequence: number;
}

export interface TurnFound {
  readonly summary: TurnSummary;
  readonly result?: ExecutionResult | undefined;
  readonly timeline?: readonly TimelineEntry[] | undefined;
}

export interface Turns {
  /**
   * Queues one turn. Submitting the same request again (same execution id, same content) never runs it twice: it answers with
   * the stored result.
   *
   * @returns Once the queue holds it. Refused with `turn_queue_full` or `request_too_large`, then certainly not queued.
   */
  submit(request: TurnRequest, options?: SubmitOptions): Promise<Result<SubmittedTurn, ClientError>>;
  /** Follows a turn of this principal that somebody else, or an earlier process, submitted. */
  watch(executionId: string, options?: SubmitOptions): Promise<Result<TurnWatcher, ClientError>>;
  /** `timeline`: what was recorded of it; absent while it waits. */
  get(executionId: string): Promise<Result<TurnFound, ClientError>>;
  list(query?: TurnList): Promise<Result<readonly TurnSummary[], ClientError>>;
  /** @param requester Whose turn it is, for whoever administers turns; one's own when absent. */
  cancel(executionId: string, requester?: Address): Promise<Result<'cancelling' | 'cancelled' | 'ended', ClientError>>;
}

const RESULT_TIMEOUT_MS = 120_000;

export interface ClosableTurns extends Turns {
  /** Ends every wait. */
  close(): Promise<void>;
}

export const turnsOf = (session: Session): ClosableTurns => {
  const refusals = new Refusals(session);
  const open = new Set<TurnWatcher>();
  const get: Turns['get'] = (executionId) => ask(session, 'turn.get', TurnGet, { executionId }, TurnGetReply);

  const follow = async (executionId: string, options: SubmitOptions = {}): Promise<Result<FollowedTurn, ClientError>> => {
    const followed = await followTurn(session, executionId, options, () => get(executionId));
    if (!followed.ok) return followed;
    open.add(followed.value);
    void followed.value.closed.then(() => open.delete(followed.value));
    return followed;
  };

  const submit: Turns['submit'] = async (request, options) => {
    const checked = checkedBody(TurnRequest, request);
    if (!checked.ok) return checked;
    // Ears first: an answer may be quicker than the acknowledgement.
    const listening = await refusals.listen();
    if (!listening.ok) return listening;
    const followed = await follow(checked.value.executionId, options);
    if (!followed.ok) return followed;
    const natsSubject = principalSubject('turn.request', session.namespaceId, session.principal);
    const stored = await session.bus.publishStored(
      natsSubject,
      { message: TurnRequest, body: checked.value },
      { timeoutMs: session.requestTimeoutMs },
    );
    if (!stored.ok) {
      await followed.value.stop();
      return notStored(stored.error);
    }
    const { sequence } = stored.value;
    const forget = refusals.await(sequence, (error) => followed.value.settle(err({ kind: 'refused', error })));
    void followed.value.result.then(forget);
    const { result, stop } = followed.value;
    return ok({ executionId: checked.value.executionId, sequence, result, stop });
  };

  return {
    submit: (request, options) =>
      withSpan(
        SPAN.turnSubmit,
        { kind: SpanKind.PRODUCER, attributes: { [ATTRIBUTE.messagingSystem]: 'nats', [ATTRIBUTE.executionId]: request.executionId } },
        () => submit(request, options),
      ),
    watch: async (executionId, options) => {
      const followed = await follow(executionId, options);
      if (!followed.ok) return followed;
      // It may have ended before we listened.
      const known = await get(executionId);
      if (!known.ok) {
        await followed.value.stop();
        return known;
      }
      if (known.value.result !== undefined) followed.value.settle(ok({ result: known.value.result }));
      return followed;
    },
    get,
    list: async (query = {}) => {
      const answer = await ask(session, 'turn.list', TurnList, query, TurnListReply);
      return answer.ok ? ok(answer.value.turns) : answer;
    },
    cancel: async (executionId, requester) => {
      const asked = { executionId, ...(requester === undefined ? {} : { requester }) };
      const answer = await ask(session, 'turn.cancel', TurnCancel, asked, TurnCancelReply);
      return answer.ok ? ok(answer.value.outcome) : answer;
    },
    close: async () => {
      await Promise.all([...open].map((watcher) => watcher.stop()));
    },
  };
};

interface FollowedTurn extends TurnWatcher {
  /** When nothing is subscribed to any more. */
  readonly closed: Promise<void>;
  readonly settle: (outcome: Result<TurnAnswer, ClientError>) => void;
}

/** Hears the answer and the events of one turn until it has ended, its deadline is over, or nobody listens any more. */
const followTurn = async (
  session: Session,
  executionId: string,
  options: SubmitOptions,
  get: () => ReturnType<Turns['get']>,
): Promise<Result<FollowedTurn, ClientError>> => {
  const { bus, namespaceId, principal, requestTimeoutMs } = session;
  const { promise: result, resolve: settle } = Promise.withResolvers<Result<TurnAnswer, ClientError>>();
  const subscriptions: BusSubscription[] = [];
  const closeSubscriptions = async (): Promise<void> => {
    await Promise.all(subscriptions.splice(0).map((subscription) => subscription.stop()));
  };

  const subscribed = await Promise.all([
    bus.subscribe(
      principalSubject('turn.result', namespaceId, principal, executionId),
      (message) => {
        const answer = answerIn(message, executionId);
        if (answer !== undefined) settle(ok(answer));
      },
      { timeoutMs: requestTimeoutMs },
    ),
    ...(options.onEvent === undefined
      ? []
      : [
          bus.subscribe(
            principalSubject('turn.event', namespaceId, principal, executionId),
            (message) => {
              const event = eventIn(message, executionId);
              if (event !== undefined) options.onEvent?.(event);
            },
            { timeoutMs: requestTimeoutMs },
          ),
        ]),
  ]);
  for (const subscription of subscribed) if (subscription.ok) subscriptions.push(subscription.value);
  const failed = subscribed.find((subscription) => !subscription.ok);
  if (failed !== undefined && !failed.ok) {
    await closeSubscriptions();
    return failed;
  }

  // What was published while the connection was down did not reach us; the stored answer did not go away.
  const askAgain = async (): Promise<void> => {
    const known = await get();
    if (known.ok && known.value.result !== undefined) settle(ok({ result: known.value.result }));
  };
  const unwatch = bus.watch((connected) => {
    if (connected) void askAgain();
  });
  const timeoutMs = options.resultTimeoutMs ?? RESULT_TIMEOUT_MS;
  const deadline = setTimeout(() => {
    void askAgain().then(() =>
      settle(unavailable(`turn ${executionId} has not ended within ${timeoutMs} ms; it goes on, ask for it later`)),
    );
  }, timeoutMs);
  const closed = result.then(() => {
    clearTimeout(deadline);
    unwatch();
    return closeSubscriptions();
  });
  return ok({
    executionId,
    result,
    settle,
    closed,
    stop: async () => {
      settle(unavailable(`stopped listening for turn ${executionId}`));
      await closed;
    },
  });
};

const notStored = (refusal: StoreRefusal): Result<never, ClientError> => {
  switch (refusal.kind) {
    case 'full':
      return refused(CLIENT_CODES.queueFull, 'the queue holds as many turns of this principal as it takes: wait for one to end', true);
    case 'too_large':
      return refused(CLIENT_CODES.tooLarge, 'the request is larger than the queue takes: pass larger content by reference', false);
    case 'wrong_sequence':
      return unavailable('the queue answered a question that was not asked');
    case 'unavailable':
      return err(refusal);
  }
};
