export { Faults, Gate } from './faults.ts';
export { type DoubleOptions, type EventStoreDouble, startEventStoreDouble } from './server.ts';
export type { ProposedEvent, StoredEvent } from './stored-event.ts';
