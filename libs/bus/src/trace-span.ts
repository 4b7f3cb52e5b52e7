import { type Context, type Span, SpanKind, SpanStatusCode, context, trace } from '@opentelemetry/api';
import type { ParsedSubject } from '@sharedos/contracts';

export { SpanKind };

const tracer = trace.getTracer('@sharedos/bus');

export interface HandledMessage {
  readonly kind: SpanKind.SERVER | SpanKind.CONSUMER;
  /** The verb: few names, whatever the number of principals. */
  readonly name: string;
  readonly parsed?: ParsedSubject | undefined;
  readonly bytes: number;
  /** Queue group or consumer. */
  readonly group: string;
}

/**
 * Runs a handler inside the span of its message, under the sender's trace context. A failure is marked by its class alone: the text
 * of an error may hold what was read.
 */
export const inMessageSpan = <T>(parent: Context, message: HandledMessage, run: (span: Span) => Promise<T>): Promise<T> => {
  const span = tracer.startSpan(
    message.name,
    {
      kind: message.kind,
      attributes: {
        'messaging.system': 'nats',
        'messaging.operation.type': 'process',
        'messaging.destination.template': `sharedos.v1.{namespace}.${message.name}`,
        'messaging.consumer.group.name': message.group,
        'messaging.message.body.size': message.bytes,
        ...(message.parsed === undefined ? {} : { 'sharedos.namespace_id': message.parsed.namespaceId }),
      },
    },
    parent,
  );
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      return await run(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.setAttribute('error.type', error instanceof Error ? error.name : 'thrown');
      throw error;
    } finally {
      span.end();
    }
  });
};

/** The trace's id, of 32 hex digits; `undefined` while nothing traces. */
export const traceIdOf = (span: Span): string | undefined => {
  const { traceId } = span.spanContext();
  return /[1-9a-f]/.test(traceId) ? traceId : undefined;
};
