import { context, propagation, trace } from '@opentelemetry/api';
import type { BoundedExport } from './bounded-export.ts';
import { forgetTracer } from './with-span.ts';

export interface TelemetryOptions {
  /** The name of the service, as it shows in a trace. */
  readonly service: string;
  /** This process among the replicas of the service. */
  readonly instance: string;
  readonly version: string;
  /** Where the one line about lost spans goes at shutdown; standard error when absent. */
  readonly report?: (line: string) => void;
  /** The environment to read `OTEL_*` from, to decide whether to export at all; that of the process when absent. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface Telemetry {
  /** Whether spans are exported. Without an endpoint they are not even made, and context still travels through. */
  readonly exporting: boolean;
  /** Spans lost so far: queue full, collector unreachable, or not sent by the end of {@link Telemetry.shutdown}. */
  droppedSpans(): number;
  exportedSpans(): number;
  /**
   * Sends what is left, reports what was lost and turns telemetry off. Never fails and never outlasts its deadline.
   *
   * @param deadlineMs How long a slow collector may hold back the end of the process.
   */
  shutdown(deadlineMs?: number): Promise<void>;
}

/** The SDK's own defaults (2048 spans, 5 s) lose spans when a burst of turns ends; these hold some 3 000 mediated calls. */
export const SPAN_QUEUE_MAX = 32_768;
export const SPAN_BATCH_MAX = 2_048;
export const SPAN_DELAY_MS = 1_000;
export const SHUTDOWN_DEADLINE_MS = 3_000;

/**
 * Turns tracing on for this process: W3C trace context, spans over OTLP/HTTP, all configured by the standard `OTEL_*` variables
 * (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_RESOURCE_ATTRIBUTES`, …). Without an endpoint
 * nothing is exported and nothing is said about it.
 *
 * The SDK is loaded here and not with this module: everything that merely opens a span imports the small API alone.
 *
 * Baggage is not propagated: it would carry whatever a client wrote there into every service.
 */
export const startTelemetry = async (options: TelemetryOptions): Promise<Telemetry> => {
  const env = options.env ?? process.env;
  const { W3CTraceContextPropagator } = await import('@opentelemetry/core');
  if (!wantsExport(env)) return contextOnly(new W3CTraceContextPropagator());

  const [{ NodeSDK }, { OTLPTraceExporter }, { BatchSpanProcessor }, resources, { BoundedExport }] = await Promise.all([
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    import('./bounded-export.ts'),
  ]);
  const maxQueueSize = positive(env['OTEL_BSP_MAX_QUEUE_SIZE'], SPAN_QUEUE_MAX);
  const spans = new BoundedExport(maxQueueSize);
  const processor = new BatchSpanProcessor({
    exporter: spans.counted(new OTLPTraceExporter({ concurrencyLimit: Math.ceil(maxQueueSize / SPAN_BATCH_MAX) + 8 })),
    maxQueueSize,
    maxExportBatchSize: Math.min(maxQueueSize, positive(env['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'], SPAN_BATCH_MAX)),
    scheduledDelayMillis: positive(env['OTEL_BSP_SCHEDULE_DELAY'], SPAN_DELAY_MS),
    exportTimeoutMillis: positive(env['OTEL_BSP_EXPORT_TIMEOUT'], 30_000),
  });
  const sdk = new NodeSDK({
    resource: resources.defaultResource().merge(
      resources.resourceFromAttributes({
        'service.namespace': 'sharedos',
        'service.name': options.service,
        'service.instance.id': options.instance,
        'service.version': options.version,
      }),
    ),
    // Attributes stated in the environment win; host and process detectors would tell a collector more than it needs.
    resourceDetectors: [resources.envDetector],
    textMapPropagator: new W3CTraceContextPropagator(),
    spanProcessors: [spans.gate(processor)],
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  forgetTracer();
  return exporting(sdk, spans, options.report ?? ((line) => process.stderr.write(`${line}\n`)));
};

const wantsExport = (env: Readonly<Record<string, string | undefined>>): boolean => {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return false;
  if (env['OTEL_TRACES_EXPORTER']?.trim().toLowerCase() === 'none') return false;
  return [env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'], env['OTEL_EXPORTER_OTLP_ENDPOINT']].some((endpoint) => (endpoint ?? '').trim() !== '');
};

const positive = (text: string | undefined, fallback: number): number => {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : fallback;
};

const off = (): void => {
  trace.disable();
  context.disable();
  propagation.disable();
  forgetTracer();
};

/** A caller's trace goes through this process unchanged although it adds no span of its own. */
const contextOnly = async (propagator: Parameters<typeof propagation.setGlobalPropagator>[0]): Promise<Telemetry> => {
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(propagator);
  return {
    exporting: false,
    droppedSpans: () => 0,
    exportedSpans: () => 0,
    shutdown: async () => off(),
  };
};

const exporting = (sdk: { shutdown(): Promise<void> }, spans: BoundedExport, report: (line: string) => void): Telemetry => {
  let ended: Promise<void> | undefined;
  const end = async (deadlineMs: number): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadlineMs);
    });
    // A collector that refuses makes the SDK reject; what was lost is counted, and that count is the report.
    await Promise.race([sdk.shutdown().catch(() => undefined), deadline]);
    clearTimeout(timer);
    spans.giveUp();
    if (spans.dropped > 0) report(`telemetry: ${spans.dropped} of ${spans.dropped + spans.exported} spans were dropped`);
    off();
  };
  return {
    exporting: true,
    droppedSpans: () => spans.dropped,
    exportedSpans: () => spans.exported,
    shutdown: (deadlineMs = SHUTDOWN_DEADLINE_MS) => (ended ??= end(deadlineMs)),
  };
};
