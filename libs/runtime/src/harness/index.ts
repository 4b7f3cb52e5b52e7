export { claudeCode } from './claude-code.ts';
export { codex } from './codex.ts';
export { deepseek } from './deepseek.ts';
export * from './harness-runtime.ts';
export { pi } from './pi.ts';
export type { HarnessConnection, HarnessFrame, HarnessLaunch, HarnessVendor } from './vendor.ts';
export { type TurnBridge, type TurnBridgeOptions, openTurnBridge } from './turn-bridge.ts';
export * from './driven-driver.ts';
export * from './frame-channel.ts';
