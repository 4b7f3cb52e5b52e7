export * from './manual-time.ts';
export * from './memory-turn-kernel.ts';
export * from './turn-fixture.ts';
export * from './over-mcp.ts';
