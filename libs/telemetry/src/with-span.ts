import { type Attributes, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { ATTRIBUTE } from './attribute.ts';

export { SpanKind };
export type { Attributes, Span };

export interface SpanOptions {
  /** Whether this span asks, answers, sends or takes a message; internal when absent. */
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
}

let tracer: Tracer | undefined;

/** A tracer remembers the provider it first met; whoever starts or stops a provider makes us ask again. */
export const forgetTracer = (): void => {
  tracer = undefined;
};

/**
 * Runs `fn` inside a span that is the parent of every span begun within it, and ends it whatever happens.
 *
 * A throw makes the span an error and passes on unchanged. Of what was thrown only the class is recorded: a message may hold
 * a path, a payload or a secret. An outcome that is a value is recorded with {@link recordOutcome}.
 */
export const withSpan = async <T>(name: string, options: SpanOptions | undefined, fn: (span: Span) => T | Promise<T>): Promise<T> => {
  tracer ??= trace.getTracer('sharedos');
  return tracer.startActiveSpan(name, { ...options }, async (span) => {
    try {
      return await fn(span);
    } catch (error) {
      span.setAttribute(ATTRIBUTE.errorType, classOf(error));
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
};

/**
 * Records how an operation came out. Only `failed` is an error of the span: a denial is an ordinary answer, and a search for
 * errors must not drown in it.
 *
 * @param code The stable code of the answer, never its text.
 */
export const recordOutcome = (span: Span, outcome: string, code?: string): void => {
  span.setAttribute(ATTRIBUTE.outcome, outcome);
  if (code !== undefined) span.setAttribute(ATTRIBUTE.reasonCode, code);
  if (outcome !== 'failed') return;
  span.setStatus({ code: SpanStatusCode.ERROR });
  if (code !== undefined) span.setAttribute(ATTRIBUTE.errorType, code);
};

const CLASS_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

const classOf = (error: unknown): string => {
  const name = error instanceof Error ? error.constructor.name : '';
  return CLASS_NAME.test(name) ? name : '_OTHER';
};
