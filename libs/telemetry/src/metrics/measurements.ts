import { type CounterName, type GaugeName, type HistogramName, type LabelValues, METRIC, type MetricName } from './metric.ts';

/** Upper bounds of the buckets of every histogram, in seconds. */
export const BUCKETS = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

/** Series of one metric at most; what comes after them is counted together, so that names of tenants cannot fill the memory. */
export const SERIES_MAX = 500;
const OTHER = 'other';

export interface Distribution {
  /** One more than there are buckets: the last is what no bound holds. */
  readonly counts: number[];
  count: number;
  sum: number;
}

export interface Series<T> {
  readonly labels: readonly string[];
  value: T;
}

/** What a gauge, or a counter kept elsewhere, is at the moment it is asked. `undefined`: nobody knows now. */
export type Reading = number | undefined | readonly { readonly labels: readonly string[]; readonly value: number }[];
export type ReadMetric = () => Reading | Promise<Reading>;

/**
 * What this process counts. Counting is one look-up and one addition: no clock, no allocation beyond the first time, no SDK. Whatever
 * costs more is read when somebody asks for the metrics.
 */
export class Measurements {
  readonly #counters = new Map<MetricName, Map<string, Series<number>>>();
  readonly #histograms = new Map<MetricName, Map<string, Series<Distribution>>>();
  readonly #readers = new Map<MetricName, ReadMetric>();

  count<M extends CounterName>(metric: M, ...labels: LabelValues<M>): void {
    this.add(metric, 1, ...labels);
  }

  add<M extends CounterName>(metric: M, by: number, ...labels: LabelValues<M>): void {
    seriesOf(this.#counters, metric, labels, zero).value += by;
  }

  /** @param seconds What one took. */
  time<M extends HistogramName>(metric: M, seconds: number, ...labels: LabelValues<M>): void {
    const { value } = seriesOf(this.#histograms, metric, labels, empty);
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket += 1;
    value.counts[bucket] = (value.counts[bucket] ?? 0) + 1;
    value.count += 1;
    value.sum += seconds;
  }

  /** Reads the metric from `read` from now on, each time that it is asked for. */
  watch(metric: GaugeName | CounterName, read: ReadMetric): void {
    this.#readers.set(metric, read);
  }

  counters(metric: MetricName): readonly Series<number>[] {
    return [...(this.#counters.get(metric)?.values() ?? [])];
  }

  histograms(metric: MetricName): readonly Series<Distribution>[] {
    return [...(this.#histograms.get(metric)?.values() ?? [])];
  }

  reader(metric: MetricName): ReadMetric | undefined {
    return this.#readers.get(metric);
  }
}

/** One for the process, as there is one tracer: what counts a decision is not told where the counts go. */
export const measurements = new Measurements();

const zero = (): number => 0;
const empty = (): Distribution => ({ counts: Array.from({ length: BUCKETS.length + 1 }, () => 0), count: 0, sum: 0 });

const seriesOf = <T>(
  all: Map<MetricName, Map<string, Series<T>>>,
  metric: MetricName,
  labels: readonly string[],
  make: () => T,
): Series<T> => {
  let known = all.get(metric);
  if (known === undefined) all.set(metric, (known = new Map()));
  const key = labels.length < 2 ? (labels[0] ?? '') : labels.join('\n');
  const found = known.get(key);
  if (found !== undefined) return found;
  if (known.size >= SERIES_MAX && !labels.every((label) => label === OTHER)) {
    return seriesOf(
      all,
      metric,
      METRIC[metric].labels.map(() => OTHER),
      make,
    );
  }
  const made = { labels, value: make() };
  known.set(key, made);
  return made;
};
