export * from './event-id.ts';
export * from './event-store.ts';
export { type EventStoreDbOptions, eventStoreDbEventStore } from './eventstoredb.ts';
export * from './jetstream.ts';
export { APPEND_BYTES_MAX, APPEND_EVENTS_MAX } from './log-record.ts';
export { type LogPlace, logPlace, logSubject } from './log-subject.ts';
export * from './memory.ts';
export * from './run-command.ts';
export { sharedBarrier, type TakeBarrier } from './shared-barrier.ts';
