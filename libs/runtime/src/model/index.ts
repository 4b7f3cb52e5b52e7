export { CONVERSATION_LENGTH_MAX } from './model-driver.ts';
export { type ModelAuth, type ModelCredential, tokenFile } from './model-auth.ts';
export * from './model-runtime.ts';
export type { WireName } from './model-wire.ts';
