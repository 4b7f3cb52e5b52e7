import type { IncomingMessage, ServerResponse } from 'node:http';
import { ValueType } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  MeterProvider,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import { BUCKETS, type Measurements, type ReadMetric, type Reading, type Series } from './measurements.ts';
import { METRIC, type MetricName, type MetricSpec, metricsOf } from './metric.ts';

/** How long a metric that has to be asked for may take. One that takes longer is left out of that answer. */
const READ_MS = 1_500;

type HrTime = [number, number];
const hrTime = (ms: number): HrTime => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)];

/** Answers with all metrics of a service, in the text format of Prometheus, through the SDK of OpenTelemetry. */
export type MetricPage = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * @param service Whose metrics: one that it has and that was not counted yet is shown without a series.
 */
export const metricPage = (measured: Measurements, service: string): MetricPage => {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    metricProducers: [producerOf(measured, service)],
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  });
  // The exporter is asked through a provider; without one it answers nothing.
  void new MeterProvider({ readers: [exporter], resource: resourceFromAttributes({ 'service.name': service }) });
  return (request, response) => exporter.getMetricsRequestHandler(request, response);
};

const producerOf = (measured: Measurements, service: string): MetricProducer => {
  const since = hrTime(Date.now());
  return {
    collect: async () => {
      const errors: unknown[] = [];
      const time = { startTime: since, endTime: hrTime(Date.now()) };
      const metrics = await Promise.all(metricsOf(service).map((metric) => dataOf(measured, metric, time, (error) => errors.push(error))));
      return {
        resourceMetrics: { resource: resourceFromAttributes({}), scopeMetrics: [{ scope: { name: 'sharedos' }, metrics }] },
        errors,
      };
    },
  };
};

const dataOf = async (
  measured: Measurements,
  metric: MetricName,
  time: Pick<DataPoint<number>, 'startTime' | 'endTime'>,
  onError: (error: unknown) => void,
): Promise<MetricData> => {
  const { name, help, kind, labels } = METRIC[metric] as MetricSpec;
  const base = {
    descriptor: { name, description: help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const point = <T>(values: readonly string[], value: T): DataPoint<T> => ({
    ...time,
    attributes: Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ''])),
    value,
  });
  if (kind === 'histogram') {
    const dataPoints = measured
      .histograms(metric)
      .map(({ labels: values, value: { counts, count, sum } }) =>
        point(values, { buckets: { boundaries: [...BUCKETS], counts: [...counts] }, count, sum }),
      );
    return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const reader = measured.reader(metric);
  const series = reader === undefined ? counted(measured, metric, labels) : await read(reader, onError);
  const dataPoints = series.map(({ labels: values, value }) => point(values, value));
  return kind === 'counter'
    ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...base, dataPointType: DataPointType.GAUGE, dataPoints };
};

/** A counter without labels is there from the start: a rate needs its zero. */
const counted = (measured: Measurements, metric: MetricName, labels: readonly string[]): readonly Series<number>[] => {
  const found = measured.counters(metric);
  return found.length === 0 && labels.length === 0 && METRIC[metric].kind === 'counter' ? [{ labels: [], value: 0 }] : found;
};

const read = async (reader: ReadMetric, onError: (error: unknown) => void): Promise<readonly Series<number>[]> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), READ_MS);
  });
  try {
    const reading: Reading = await Promise.race([reader(), late]);
    if (reading === undefined) return [];
    return typeof reading === 'number' ? [{ labels: [], value: reading }] : reading;
  } catch (error) {
    onError(error);
    return [];
  } finally {
    clearTimeout(timer);
  }
};
