import type { Context } from '@opentelemetry/api';
import type { ReadableSpan, Span, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';

/** `0` of the exporter's result codes; the package that names it is not worth loading for one number. */
const EXPORTED = 0;
const SAMPLED = 1;

/**
 * Counts what the batch processor of the SDK does not tell: spans that found the queue full, spans that the collector did not
 * take, and spans still waiting when the process ends.
 *
 * It holds the bound of the queue itself, so the processor behind it (given the same bound) never drops in silence.
 */
export class BoundedExport {
  readonly #queueMax: number;
  #waiting = 0;
  #inFlight = 0;
  #dropped = 0;
  #exported = 0;

  constructor(queueMax: number) {
    this.#queueMax = queueMax;
  }

  /** Spans lost so far; those still on their way are not counted. */
  get dropped(): number {
    return this.#dropped;
  }

  get exported(): number {
    return this.#exported;
  }

  /** Spans ended and neither exported nor lost. */
  get pending(): number {
    return this.#waiting + this.#inFlight;
  }

  /** Counts as lost whatever has not been exported by now: called once, when nobody waits any longer. */
  giveUp(): void {
    this.#dropped += this.pending;
    this.#waiting = 0;
    this.#inFlight = 0;
  }

  /** The gate before the queue of `processor`. */
  gate(processor: SpanProcessor): SpanProcessor {
    return {
      onStart: (span: Span, parent: Context) => processor.onStart(span, parent),
      onEnd: (span: ReadableSpan) => {
        if ((span.spanContext().traceFlags & SAMPLED) === 0) return;
        if (this.#waiting >= this.#queueMax) {
          this.#dropped += 1;
          return;
        }
        this.#waiting += 1;
        processor.onEnd(span);
      },
      forceFlush: (...options) => processor.forceFlush(...options),
      shutdown: () => processor.shutdown(),
    };
  }

  /** The counter behind the queue, around the exporter that the processor was given. */
  counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        this.#waiting = Math.max(0, this.#waiting - spans.length);
        this.#inFlight += spans.length;
        exporter.export(spans, (result) => {
          const counted = Math.min(spans.length, this.#inFlight);
          this.#inFlight -= counted;
          if (result.code === EXPORTED) this.#exported += counted;
          else this.#dropped += counted;
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
      ...(exporter.forceFlush === undefined ? {} : { forceFlush: (...options) => exporter.forceFlush?.(...options) ?? Promise.resolve() }),
    };
  }
}
