export * from './turn-kernel.ts';
