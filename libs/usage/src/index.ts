export * from './usage-store.ts';
