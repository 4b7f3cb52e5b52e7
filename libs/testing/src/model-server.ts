import { type IncomingHttpHeaders, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ScriptedReply, shapeAt } from './model-shapes.ts';

export type { ScriptedReply };

/** One question as it arrived. */
export interface AskedQuestion {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/**
 * A provider of models for tests: it speaks Chat Completions, Responses and Messages, each whole and as a stream, and says what it was
 * told to say, one reply a question.
 */
export interface ModelServer {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  readonly asked: readonly AskedQuestion[];
  /** Adds replies. A question beyond the last is answered 503. */
  say(...replies: readonly ScriptedReply[]): void;
  stop(): Promise<void>;
}

/** What a provider's refusal tells and nobody may repeat. */
export const TOLD_BY_REFUSAL = 'the account acct_5f3 and its prompt';

export const startModelServer = async (): Promise<ModelServer> => {
  const asked: AskedQuestion[] = [];
  const replies: ScriptedReply[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const path = request.url ?? '';
      const body = JSON.parse(Buffer.concat(parts).toString('utf8')) as AskedQuestion['body'];
      asked.push({ path, headers: request.headers, body });
      answer(response, path, body, replies.shift() ?? { status: 503 }, `${asked.length}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    say: (...more) => void replies.push(...more),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

const answer = (response: ServerResponse, path: string, body: AskedQuestion['body'], reply: ScriptedReply, id: string): void => {
  if (reply.silent === true) return;
  if (reply.status !== undefined) {
    response
      .writeHead(reply.status, {
        'content-type': 'application/json',
        ...(reply.location === undefined ? {} : { location: reply.location }),
      })
      .end(JSON.stringify({ error: { message: TOLD_BY_REFUSAL } }));
    return;
  }
  if (reply.raw !== undefined) {
    response.writeHead(200, { 'content-type': reply.raw.contentType }).end(reply.raw.body);
    return;
  }
  const shape = shapeAt(path);
  if (shape === undefined) {
    response.writeHead(404).end();
    return;
  }
  const { model, stream } = body as { model: string; stream?: boolean };
  if (reply.stream ?? stream === true) {
    const events = shape.events(reply, model, id);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const text = (reply.cut === true ? events.slice(0, Math.ceil(events.length / 2)) : events)
      .map(
        ({ event, data }) =>
          `${event === undefined ? '' : `event: ${event}\n`}data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`,
      )
      .join('');
    // In two writes that part in the middle of a line, as the network does.
    response.write(text.slice(0, text.length / 2));
    response.end(text.slice(text.length / 2));
    return;
  }
  const whole = JSON.stringify(shape.whole(reply, model, id));
  response.writeHead(200, { 'content-type': 'application/json' }).end(reply.cut === true ? whole.slice(0, whole.length / 2) : whole);
};
