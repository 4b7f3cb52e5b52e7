/** A value of an attribute, as plain JSON. */
export type AttributeValue = string | number | boolean | readonly AttributeValue[] | { readonly [key: string]: AttributeValue } | null;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** One span as a collector gets it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Absent for the root of a trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  /** `service.name` of the process that sent it. */
  readonly service: string;
  /** Which replica: `service.instance.id`, empty when it was not stated. */
  readonly instance: string;
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer' | 'unspecified';
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  /** Spans this one was caused by without being their child. */
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code: 'unset' | 'ok' | 'error'; readonly message?: string };
}

const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const STATUS_CODES = ['unset', 'ok', 'error'] as const;

interface AnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly bytesValue?: string;
  readonly arrayValue?: { readonly values?: readonly AnyValue[] };
  readonly kvlistValue?: { readonly values?: readonly KeyValue[] };
}
interface KeyValue {
  readonly key: string;
  readonly value?: AnyValue;
}
interface ExportRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly OtlpSpan[] }[];
  }[];
}
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind?: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly KeyValue[];
  readonly events?: readonly { readonly name: string; readonly attributes?: readonly KeyValue[] }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status?: { readonly code?: number; readonly message?: string };
}

/**
 * Reads an OTLP export request in its JSON form.
 *
 * @throws SyntaxError or TypeError when it is none.
 */
export const readOtlpJson = (text: string): readonly ReceivedSpan[] => {
  const request = JSON.parse(text) as ExportRequest;
  return (request.resourceSpans ?? []).flatMap(({ resource, scopeSpans }) => {
    const described = attributesOf(resource?.attributes);
    const service = String(described['service.name'] ?? 'unknown');
    const instance = String(described['service.instance.id'] ?? '');
    return (scopeSpans ?? []).flatMap(({ spans }) => (spans ?? []).map((span) => receivedSpan(service, instance, span)));
  });
};

const receivedSpan = (service: string, instance: string, span: OtlpSpan): ReceivedSpan => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId ? { parentSpanId: span.parentSpanId } : {}),
  name: span.name,
  service,
  instance,
  kind: KINDS[span.kind ?? 0] ?? 'unspecified',
  startMs: milliseconds(span.startTimeUnixNano),
  endMs: milliseconds(span.endTimeUnixNano),
  attributes: attributesOf(span.attributes),
  events: (span.events ?? []).map((event) => ({ name: event.name, attributes: attributesOf(event.attributes) })),
  links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
  status: { code: STATUS_CODES[span.status?.code ?? 0] ?? 'unset', ...(span.status?.message ? { message: span.status.message } : {}) },
});

// As a number, nanoseconds since the epoch would lose their last three digits.
const milliseconds = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1_000n) / 1_000;

const attributesOf = (pairs: readonly KeyValue[] | undefined): Attributes =>
  Object.fromEntries((pairs ?? []).map(({ key, value }) => [key, plain(value)]));

const plain = (value: AnyValue | undefined): AttributeValue => {
  if (value === undefined) return null;
  if (value.intValue !== undefined) return Number(value.intValue);
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(plain);
  if (value.kvlistValue !== undefined) return attributesOf(value.kvlistValue.values);
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? value.bytesValue ?? null;
};
