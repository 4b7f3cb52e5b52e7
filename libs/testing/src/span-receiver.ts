import { type IncomingMessage, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type ReceivedSpan, readOtlpJson } from './otlp-json.ts';
import { waitFor } from './wait-for.ts';

/** A collector for tests and the demo: what `OTEL_EXPORTER_OTLP_ENDPOINT` may point at. */
export interface SpanReceiver {
  /** `http://127.0.0.1:port`, without a path. */
  readonly url: string;
  /** The spans kept, in order of arrival, once each. */
  spans(): readonly ReceivedSpan[];
  /** Spans that came when the receiver was full, and were not kept. */
  dropped(): number;
  /** What was sent that is not understood, one line each. */
  refused(): readonly string[];
  /**
   * Waits until all that has arrived satisfies `predicate`. A trace is complete only when its last batch is here, so ask for the
   * span that ends last.
   *
   * @throws DeadlinePassed
   */
  waitFor(predicate: (spans: readonly ReceivedSpan[]) => boolean, deadlineMs: number): Promise<readonly ReceivedSpan[]>;
  stop(): Promise<void>;
}

const SPANS_MAX = 200_000;
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const REFUSED_MAX = 100;

/** Listens on a free port of the loopback interface for OTLP over HTTP in its JSON form, compressed or not. */
export const startSpanReceiver = async (): Promise<SpanReceiver> => {
  // An exporter whose answer got lost sends a batch again.
  const kept = new Map<string, ReceivedSpan>();
  const refused: string[] = [];
  let dropped = 0;

  const server = createServer((request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const refuse = (status: number, message: string): void => {
      if (refused.length < REFUSED_MAX) refused.push(message);
      answer(status, { message });
    };
    if (request.method !== 'POST' || request.url !== '/v1/traces')
      return refuse(404, `${request.method} ${request.url} is not POST /v1/traces`);
    const type = request.headers['content-type'] ?? 'nothing';
    if (!type.startsWith('application/json'))
      return refuse(415, `${type} is not application/json: set OTEL_EXPORTER_OTLP_PROTOCOL=http/json`);
    void readBody(request).then(
      (text) => {
        let spans: readonly ReceivedSpan[];
        try {
          spans = readOtlpJson(text);
        } catch (error) {
          return refuse(400, `not an export request: ${(error as Error).message}`);
        }
        for (const span of spans) {
          const id = `${span.traceId}/${span.spanId}`;
          if (kept.size < SPANS_MAX || kept.has(id)) kept.set(id, span);
          else dropped += 1;
        }
        return answer(200, {});
      },
      (error: Error) => refuse(400, error.message),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const spans = (): readonly ReceivedSpan[] => [...kept.values()];
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    dropped: () => dropped,
    refused: () => [...refused],
    waitFor: (predicate, deadlineMs) =>
      waitFor(
        'spans',
        () => {
          const now = spans();
          return predicate(now) && now;
        },
        deadlineMs,
      ),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // Exporters keep their connections.
        server.closeAllConnections();
      }),
  };
};

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > BODY_BYTES_MAX) throw new Error(`an export larger than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  return (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body, { maxOutputLength: BODY_BYTES_MAX }) : body).toString('utf8');
};
