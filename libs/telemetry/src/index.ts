export * from './attribute.ts';
export * from './bounded-export.ts';
export * from './metrics/measurements.ts';
export * from './metrics/metric.ts';
export * from './metrics/operator-port.ts';
export * from './span-name.ts';
export * from './start-telemetry.ts';
export * from './with-span.ts';
