import { ledgerContract } from './contract.ts';
import { memoryRecordLog } from './memory.ts';

ledgerContract('memory', async () => {
  const log = memoryRecordLog();
  return {
    log: async () => log,
    // This log is the process: what it keeps is lost with it, and nothing here survives but by living on.
    restart: async () => undefined,
    stall: async () => log.stall(),
    resume: async () => log.resume(),
    fill: async (isFull) => log.limit(isFull ? 0 : Number.POSITIVE_INFINITY),
    holdBack: (sequenceMax = Number.POSITIVE_INFINITY) => log.holdBack(sequenceMax),
    close: async () => undefined,
  };
});
