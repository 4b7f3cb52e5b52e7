import {
  type AppendResult,
  type BaseOptions,
  type Credentials,
  ErrorType,
  EventStoreDBClient,
  type WrongExpectedVersionError,
  isCommandError,
} from '@eventstore/db-client';
import { pause } from '@sharedos/bus';
import { type Result, err, ok } from '@sharedos/contracts';

/** Why a call was not done. `unavailable` leaves open whether it was; the others are answers. */
export type CallFailure =
  | { readonly kind: 'conflict' | 'not_found' | 'too_large' | 'deleted'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly isSilent?: true };

/** What each call of ours says of itself: that only the leader may answer, and who we are. */
export type CallOptions = Required<Pick<BaseOptions, 'requiresLeader' | 'credentials'>>;

/** How soon a client has turned to the leader that it was told of. */
const TURN_MS = 10;

/**
 * A client of EventStoreDB that gets a new one when it is not answered.
 *
 * Its calls name their credentials one by one. That makes the client send each append as a call of its own, with the deadline and the
 * demand for the leader in it. Appends without credentials share one call in which neither can be said, and a failure of it is told
 * to every other client of the process.
 */
export class EventStoreDbConnection {
  readonly #connectionString: string;
  readonly options: CallOptions;
  #client: EventStoreDBClient;
  /** Aborted when the client is left: a read that is cancelled then looks like one that has come to its end. */
  #left = new AbortController();
  #answeredAt = 0;
  #closed = false;

  private constructor(connectionString: string, credentials: Credentials) {
    this.#connectionString = connectionString;
    this.options = { requiresLeader: true, credentials };
    this.#client = EventStoreDBClient.connectionString(connectionString);
  }

  /** @returns Why the connection string will not do; it is never part of the reason, for it holds a password. */
  static open(connectionString: string): Result<EventStoreDbConnection, string> {
    if (/[?&]throwOnAppendFailure=false/i.test(connectionString))
      return err('throwOnAppendFailure must be left at its default: the other setting tells a wrong revision');
    const insecure = /[?&]tls=false(&|$)/i.test(connectionString);
    const [, user, password] = /^\s*esdb(?:\+discover)?:\/\/([^:@/?]+):([^@/?]+)@/.exec(connectionString) ?? [];
    if (!insecure && (user === undefined || password === undefined)) return err('a connection with TLS needs user and password');
    try {
      // Without TLS no credentials are sent, whatever they are.
      const credentials = { username: decodeURIComponent(user ?? 'none'), password: decodeURIComponent(password ?? 'none') };
      return ok(new EventStoreDbConnection(connectionString, credentials));
    } catch {
      return err('the connection string cannot be read');
    }
  }

  get client(): EventStoreDBClient {
    return this.#client;
  }

  /** Does `work` with the client, once more when it turned out not to be connected to the leader, and gives up after `budgetMs`. */
  async call<T>(budgetMs: number, work: (client: EventStoreDBClient, signal: AbortSignal) => Promise<T>): Promise<Result<T, CallFailure>> {
    const startedAt = performance.now();
    const first = await this.#once(budgetMs, work);
    if (first.ok || first.error.kind !== 'unavailable' || first.error.reason !== ErrorType.NOT_LEADER) return first;
    await pause(TURN_MS);
    return this.#once(Math.max(1, budgetMs - (performance.now() - startedAt)), work);
  }

  /** Appends if the stream ends at `expected`. */
  append(
    stream: string,
    events: Parameters<EventStoreDBClient['appendToStream']>[1],
    expectedRevision: bigint | 'any' | 'no_stream',
    budgetMs: number,
  ): Promise<Result<AppendResult, CallFailure>> {
    return this.call(budgetMs, (client) =>
      client.appendToStream(stream, events, { ...this.options, expectedRevision, deadline: Math.max(1, Math.ceil(budgetMs)) }),
    );
  }

  /** Leaves a client that does not answer, unless somebody has done so before. The next call connects anew. */
  renew(silent: EventStoreDBClient): void {
    if (this.#closed || silent !== this.#client) return;
    this.#left.abort();
    this.#left = new AbortController();
    this.#client = EventStoreDBClient.connectionString(this.#connectionString);
    leave(silent);
  }

  close(): void {
    this.#closed = true;
    this.#left.abort();
    leave(this.#client);
  }

  async #once<T>(budgetMs: number, work: (client: EventStoreDBClient, signal: AbortSignal) => Promise<T>): Promise<Result<T, CallFailure>> {
    if (this.#closed) return err({ kind: 'unavailable', reason: 'the store is closed' });
    const client = this.#client;
    const startedAt = performance.now();
    const ended = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Result<T, CallFailure>>((resolve) => {
      timer = setTimeout(
        () => resolve(err({ kind: 'unavailable', reason: `no answer within ${Math.round(budgetMs)} ms`, isSilent: true })),
        budgetMs,
      );
    });
    const answered = work(client, AbortSignal.any([ended.signal, this.#left.signal])).then<Result<T, CallFailure>, Result<T, CallFailure>>(
      ok,
      (error: unknown) => err(failureOf(error)),
    );
    const result = await Promise.race([answered, late]);
    clearTimeout(timer);
    ended.abort();
    const isSilent = !result.ok && result.error.kind === 'unavailable' && result.error.isSilent === true;
    if (!isSilent) this.#answeredAt = performance.now();
    // A connection that swallows what is sent looks like this for minutes, so the next call does not use it. One that answers others is
    // only slow, and leaving it would end what is under way on it.
    else if (this.#answeredAt < startedAt) this.renew(client);
    return result;
  }
}

/** The client ends its calls but keeps its connection, which nobody else can close. */
const leave = (client: EventStoreDBClient): void => {
  void client.dispose();
  const { getChannel } = client as unknown as { getChannel(): Promise<{ close(): void }> };
  void getChannel().then(
    (channel) => channel.close(),
    () => undefined,
  );
};

/** A conflict keeps the revision out: what the stream holds is read, for it may be our own earlier attempt. */
export const failureOf = (error: unknown): CallFailure => {
  const reason = error instanceof Error ? error.message : String(error);
  if (!isCommandError(error as Error)) return { kind: 'unavailable', reason };
  const { type } = error as WrongExpectedVersionError | { readonly type: ErrorType };
  switch (type) {
    case ErrorType.WRONG_EXPECTED_VERSION:
      return { kind: 'conflict', reason };
    case ErrorType.STREAM_NOT_FOUND:
    case ErrorType.NO_STREAM:
      return { kind: 'not_found', reason };
    case ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED:
      return { kind: 'too_large', reason };
    case ErrorType.STREAM_DELETED:
      return { kind: 'deleted', reason };
    case ErrorType.NOT_LEADER:
      return { kind: 'unavailable', reason: type };
    case ErrorType.DEADLINE_EXCEEDED:
      return { kind: 'unavailable', reason, isSilent: true };
    default:
      return { kind: 'unavailable', reason };
  }
};
