export * from './tool-handler.ts';
