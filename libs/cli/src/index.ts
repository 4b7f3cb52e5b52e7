export * from './context-file.ts';
export * from './demo-world.ts';
export * from './exit-code.ts';
export * from './principal-name.ts';
export * from './program.ts';
export * from './start-system.ts';
export * from './table.ts';
