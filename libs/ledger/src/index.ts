export { type JetStreamLedgerOptions, jetStreamLedger } from './jetstream.ts';
export type { LedgerOptions } from './ledger-over.ts';
export * from './ledger.ts';
export { type MemoryRecordLog, memoryLedger, memoryRecordLog } from './memory.ts';
export { type EncodedRecord, decodeLedgerRecord, decodeUseClaim } from './records.ts';
export { operationSubject, placeSubject, useOfSubject, useSubject } from './ledger-names.ts';
