export * from './attribute.ts';
export * from './bounded-export.ts';
export * from './span-name.ts';
export * from './start-telemetry.ts';
export * from './with-span.ts';
