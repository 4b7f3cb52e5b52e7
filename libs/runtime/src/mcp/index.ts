export * from './bridge.ts';
export * from './escalation-latch.ts';
export * from './http.ts';
export * from './published.ts';
export * from './session-token.ts';
export * from './stdio.ts';
