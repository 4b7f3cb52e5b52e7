import type { ReceivedSpan, SpanReceiver } from '@sharedos/testing';

/** Makes a service send its spans, soon enough for a test to wait for them. */
export const tracedTo = (receiver: SpanReceiver): Readonly<Record<string, string>> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '200',
});

/** How many requests of a verb each replica answered. */
export const answersByReplica = (spans: readonly ReceivedSpan[], verb: string): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { name, kind, instance } of spans) {
    if (name === verb && kind === 'server') counts[instance] = (counts[instance] ?? 0) + 1;
  }
  return counts;
};
