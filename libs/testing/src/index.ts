export * from './clock.ts';
export * from './find-servers.ts';
export * from './free-port.ts';
export * from './local-stack.ts';
export * from './managed-process.ts';
export type { ServerHandle } from './server-process.ts';
export type { ServiceProcess } from './service-process.ts';
export * from './wait-for.ts';
