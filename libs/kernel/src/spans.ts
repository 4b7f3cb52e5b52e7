import { monotonicMs } from '@sharedos/contracts';

/** Names, identifiers and outcomes; never arguments, results or payloads: whoever measures is no authorized reader. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface Span {
  readonly name: string;
  /** Fractional milliseconds of a clock that only goes forward. */
  readonly durationMs: number;
  readonly attributes: SpanAttributes;
}

/** Where a host receives what its kernel measured. Told at the end of each span; a throw is ignored. */
export interface SpanSink {
  record(span: Span): void;
}

/** How an operation says what it turned out to be. Last write of a key wins. */
export interface SpanScope {
  set(key: string, value: string | number | boolean): void;
}

/** `TOOL_HANDLER` measures the host's own work, so that it can be taken out of the rest. */
export const SPAN = Object.freeze({
  AUTHORITY_LOAD: 'kernel.authority.load',
  AUTHORIZE: 'kernel.authorize',
  TOOL_CATALOGUE: 'kernel.tool.catalogue',
  TOOL_DISCOVER: 'kernel.tool.discover',
  TOOL_INVOKE: 'kernel.tool.invoke',
  TOOL_HANDLER: 'kernel.tool.handler',
  TOOL_MEDIATE: 'envelope.tool.mediate',
  TURN: 'envelope.turn',
  MCP_HANDLE: 'mcp.handle',
});
export type SpanName = (typeof SPAN)[keyof typeof SPAN];

const UNMEASURED: SpanScope = Object.freeze({ set: () => undefined });

/**
 * Runs an operation and tells the sink how long it took, whether it succeeds or throws. Without a sink it is one comparison and
 * the operation's own promise.
 *
 * @param describe States attributes that only the result knows; runs only where there is a sink.
 */
export const measure = <T>(
  sink: SpanSink | undefined,
  name: string,
  operation: (scope: SpanScope) => Promise<T>,
  describe?: (value: T, scope: SpanScope) => void,
): Promise<T> => {
  if (sink === undefined) return operation(UNMEASURED);
  const span = startSpan(sink, name);
  const measured = async (): Promise<T> => {
    try {
      const value = await operation(span.scope);
      describe?.(value, span.scope);
      return value;
    } finally {
      span.end();
    }
  };
  return measured();
};

/** {@link measure} for an operation that answers at once. */
export const measureSync = <T>(sink: SpanSink | undefined, name: string, operation: (scope: SpanScope) => T): T => {
  if (sink === undefined) return operation(UNMEASURED);
  const span = startSpan(sink, name);
  try {
    return operation(span.scope);
  } finally {
    span.end();
  }
};

const startSpan = (sink: SpanSink, name: string) => {
  const attributes: Record<string, string | number | boolean> = {};
  const startedMs = monotonicMs();
  return {
    scope: {
      set: (key: string, value: string | number | boolean): void => {
        attributes[key] = value;
      },
    },
    end: (): void => {
      try {
        sink.record({ name, durationMs: monotonicMs() - startedMs, attributes });
      } catch {
        // An observation that could fail a decision would be a new way to be refused.
      }
    },
  };
};
