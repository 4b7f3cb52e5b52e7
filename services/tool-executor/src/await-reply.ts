import { type Bus, type Follow, followStream, readSubject, streamHead } from '@sharedos/bus';
import { type MessageEnvelope, ReplyMessage, SUBJECT_ROOT, decodeOwnBody, principalSubject } from '@sharedos/contracts';

const READ_MS = 2_000;
const STREAM = 'TURN_EVENTS';

/** The replies that turns of this process wait for. The first on record is the one; it is built by nobody here. */
export interface Replies {
  /**
   * Begins to listen, before the request goes out.
   *
   * @returns How to wait for the reply until `signal`, and rejects with its reason; `done` ends the listening.
   */
  listen(
    namespaceId: string,
    request: Pick<MessageEnvelope, 'sender' | 'id'>,
  ): { wait(signal: AbortSignal): Promise<MessageEnvelope | undefined>; done(): void };
}

/** One feed for all turns of a process: a consumer for each request would cost more than the request. */
export class ReplyFeed implements Replies {
  readonly #bus: Bus;
  readonly #waiting = new Map<string, (reply: MessageEnvelope | undefined) => void>();
  readonly #onDefect: (error: unknown, where: string) => void;
  #feed: Follow | undefined;

  constructor(bus: Bus, onDefect: (error: unknown, where: string) => void) {
    this.#bus = bus;
    this.#onDefect = onDefect;
  }

  /** Follows replies from now on. `false`: the stream does not answer; start it again. */
  async start(): Promise<boolean> {
    const head = await streamHead(this.#bus, STREAM, { timeoutMs: READ_MS });
    if (!head.ok) return false;
    this.#feed = followStream(this.#bus, {
      stream: STREAM,
      filterSubject: `${SUBJECT_ROOT}.*.reply.>`,
      fromSequence: head.value + 1,
      onMessage: ({ subject, data }) => this.#waiting.get(subject)?.(envelopeIn(data)),
      // What came while nobody followed is found on its subject.
      onAlive: (alive) => (alive ? void this.#catchUp() : undefined),
      onDefect: this.#onDefect,
    });
    return true;
  }

  listen(namespaceId: string, { sender, id }: Pick<MessageEnvelope, 'sender' | 'id'>): ReturnType<Replies['listen']> {
    const natsSubject = principalSubject('reply', namespaceId, sender, id);
    const { promise, resolve } = Promise.withResolvers<MessageEnvelope | undefined>();
    this.#waiting.set(natsSubject, resolve);
    return {
      wait: (signal) =>
        new Promise((answered, stopped) => {
          const stop = (): void => stopped(signal.reason as Error);
          if (signal.aborted) return stop();
          signal.addEventListener('abort', stop, { once: true });
          void promise.then((reply) => {
            signal.removeEventListener('abort', stop);
            answered(reply);
          });
        }),
      done: () => this.#waiting.delete(natsSubject),
    };
  }

  async stop(): Promise<void> {
    await this.#feed?.stop();
  }

  async #catchUp(): Promise<void> {
    for (const [natsSubject, resolve] of [...this.#waiting]) {
      const stored = await readSubject(this.#bus, STREAM, natsSubject, { timeoutMs: READ_MS, limitMessages: 1 });
      const [first] = stored.ok ? stored.value : [];
      if (first !== undefined) resolve(envelopeIn(first.data));
    }
  }
}

const envelopeIn = (data: Uint8Array): MessageEnvelope | undefined => {
  const reply = decodeOwnBody(ReplyMessage, data);
  return reply.ok ? reply.value : undefined;
};
