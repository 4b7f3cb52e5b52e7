export * from './js-rights.ts';
