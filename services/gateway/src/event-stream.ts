import type { ServerResponse } from 'node:http';

export interface StreamedEvent {
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

export interface EventStream {
  /** Resolves when there is room for more, or nobody listens any more. */
  send(event: StreamedEvent): Promise<void>;
  end(): void;
  /** Aborted when the other side has gone. */
  readonly gone: AbortSignal;
}

/** A word now and then, so that whoever stands between does not take the silence for an end. */
const KEEP_ALIVE_MS = 15_000;

/** Turns a response into a stream of server-sent events. */
export const openEventStream = (response: ServerResponse): EventStream => {
  const gone = new AbortController();
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
  response.flushHeaders();
  const keepAlive = setInterval(() => response.write(':\n\n'), KEEP_ALIVE_MS);
  response.once('close', () => {
    clearInterval(keepAlive);
    gone.abort();
  });
  return {
    gone: gone.signal,
    send: async ({ id, event, data }) => {
      if (gone.signal.aborted || response.writableEnded) return;
      const text = `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
      if (response.write(text)) return;
      await new Promise<void>((resolve) => {
        response.once('drain', resolve);
        response.once('close', resolve);
      });
    },
    end: () => {
      clearInterval(keepAlive);
      response.end();
    },
  };
};
