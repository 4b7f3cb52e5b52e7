export * from './js-rights.ts';
export * from './nats-config.ts';
export * from './permissions.ts';
export * from './provision.ts';
export * from './streams.ts';
