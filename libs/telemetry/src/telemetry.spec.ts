import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { context, propagation, trace } from '@opentelemetry/api';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ATTRIBUTE, SPAN, SpanKind, type Telemetry, recordOutcome, startTelemetry, withSpan } from './index.ts';

const options = { service: 'authorizer', instance: 'authorizer-1', version: '0.1.0' };

interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
  readonly events?: readonly unknown[];
}

/** A collector that answers with `status`, or never when that is `undefined`. */
const collector = async (status: number | undefined) => {
  const bodies: string[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString('utf8'));
      if (status !== undefined) response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const spans = (): WireSpan[] =>
    bodies.flatMap((body) =>
      (JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[] }).resourceSpans.flatMap((resource) =>
        resource.scopeSpans.flatMap((scope) => scope.spans),
      ),
    );
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, spans, close };
};

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const started = async (endpoint: string | undefined, report: (line: string) => void = () => undefined): Promise<Telemetry> => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', endpoint ?? '');
  vi.stubEnv('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', '');
  const telemetry = await startTelemetry({ ...options, report });
  cleanups.push(() => telemetry.shutdown(100));
  return telemetry;
};
const receiving = async (status: number | undefined) => {
  const server = await collector(status);
  cleanups.push(server.close);
  return server;
};

describe('telemetry', () => {
  it('sends each span under its name, service and parent', async () => {
    const server = await receiving(200);
    const telemetry = await started(server.endpoint);
    await withSpan(SPAN.turn, { kind: SpanKind.CONSUMER }, () =>
      withSpan(SPAN.authorize, { attributes: { [ATTRIBUTE.callId]: 'call-1' } }, () => 1),
    );
    await telemetry.shutdown();
    const [child, parent] = ['kernel.authorize', 'envelope.turn'].map((name) => server.spans().find((span) => span.name === name));
    expect(child?.parentSpanId).toBe(parent?.spanId);
    expect(child?.traceId).toBe(parent?.traceId);
    expect(child?.attributes).toContainEqual({ key: 'sharedos.call.id', value: { stringValue: 'call-1' } });
    expect(server.bodies[0]).toContain('"authorizer-1"');
    expect(telemetry.droppedSpans()).toBe(0);
  });

  it('continues a trace that came in a W3C header and passes it on', async () => {
    const server = await receiving(200);
    const telemetry = await started(server.endpoint);
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const inbound = propagation.extract(context.active(), { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    const outbound: Record<string, string> = {};
    await context.with(inbound, () => withSpan(SPAN.authorize, undefined, () => propagation.inject(context.active(), outbound)));
    await telemetry.shutdown();
    expect(outbound['traceparent']).toMatch(new RegExp(`^00-${traceId}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`));
    expect(server.spans()[0]?.parentSpanId).toBe('b7ad6b7169203331');
  });

  it('never carries baggage that a client wrote', async () => {
    await started((await receiving(200)).endpoint);
    const inbound = propagation.extract(context.active(), { baggage: 'secret=1' });
    const outbound: Record<string, string> = {};
    propagation.inject(inbound, outbound);
    expect(outbound).toEqual({});
  });

  it('records of a throw its class and never its text', async () => {
    const server = await receiving(200);
    const telemetry = await started(server.endpoint);
    const failing = withSpan(SPAN.toolHandler, undefined, () => Promise.reject(new RangeError('the password is hunter2')));
    await expect(failing).rejects.toThrow('hunter2');
    await telemetry.shutdown();
    const [span] = server.spans();
    expect(span?.status).toEqual({ code: 2 });
    expect(span?.attributes).toContainEqual({ key: 'error.type', value: { stringValue: 'RangeError' } });
    expect(span?.events ?? []).toEqual([]);
    expect(server.bodies.join('')).not.toContain('hunter2');
  });

  it.each([
    ['denied', 0],
    ['failed', 2],
    ['allowed', 0],
  ])('takes the outcome %s for the status %i', async (outcome, code) => {
    const server = await receiving(200);
    const telemetry = await started(server.endpoint);
    await withSpan(SPAN.toolInvoke, undefined, (span) => recordOutcome(span, outcome, 'some_code'));
    await telemetry.shutdown();
    expect(server.spans()[0]?.status.code).toBe(code);
    expect(server.spans()[0]?.attributes).toContainEqual({ key: 'sharedos.reason_code', value: { stringValue: 'some_code' } });
  });

  it('loses no span of a burst that the default queue would not hold', async () => {
    const server = await receiving(200);
    const telemetry = await started(server.endpoint);
    const burst = 10_000;
    for (let index = 0; index < burst; index += 1) void withSpan(SPAN.authorize, undefined, () => index);
    await vi.waitFor(async () => expect(telemetry.exportedSpans()).toBe(burst), 15_000);
    expect(telemetry.droppedSpans()).toBe(0);
  });

  it('counts and reports the spans that its queue had no room for', async () => {
    const server = await receiving(200);
    vi.stubEnv('OTEL_BSP_MAX_QUEUE_SIZE', '10');
    const lines: string[] = [];
    const telemetry = await started(server.endpoint, (line) => lines.push(line));
    for (let index = 0; index < 50; index += 1) trace.getTracer('burst').startSpan('burst').end();
    await telemetry.shutdown();
    expect(telemetry.droppedSpans()).toBeGreaterThan(0);
    expect(telemetry.droppedSpans() + telemetry.exportedSpans()).toBe(50);
    expect(lines).toEqual([`telemetry: ${telemetry.droppedSpans()} of 50 spans were dropped`]);
  });

  it('counts and reports the spans that a collector refused', async () => {
    const server = await receiving(400);
    const lines: string[] = [];
    const telemetry = await started(server.endpoint, (line) => lines.push(line));
    await withSpan(SPAN.authorize, undefined, () => 1);
    await telemetry.shutdown();
    expect(lines).toEqual(['telemetry: 1 of 1 spans were dropped']);
  });

  it('is not held back by a collector that never answers', async () => {
    const server = await receiving(undefined);
    const lines: string[] = [];
    const telemetry = await started(server.endpoint, (line) => lines.push(line));
    await withSpan(SPAN.authorize, undefined, () => 1);
    const begun = performance.now();
    await telemetry.shutdown(200);
    expect(performance.now() - begun).toBeLessThan(2_000);
    expect(lines).toEqual(['telemetry: 1 of 1 spans were dropped']);
  });

  it('without an endpoint makes no span, says nothing, and still passes a trace through', async () => {
    const lines: string[] = [];
    const telemetry = await started(undefined, (line) => lines.push(line));
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const outbound: Record<string, string> = {};
    await context.with(propagation.extract(context.active(), { traceparent }), () =>
      withSpan(SPAN.authorize, undefined, (span) => {
        expect(span.isRecording()).toBe(false);
        propagation.inject(context.active(), outbound);
      }),
    );
    await telemetry.shutdown();
    expect(outbound['traceparent']).toBe(traceparent);
    expect([telemetry.exporting, telemetry.droppedSpans(), lines]).toEqual([false, 0, []]);
  });

  it.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])('does not export when told so by %o', async (env) => {
    const telemetry = await startTelemetry({ ...options, env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', ...env } });
    cleanups.push(() => telemetry.shutdown(100));
    expect(telemetry.exporting).toBe(false);
  });
});
