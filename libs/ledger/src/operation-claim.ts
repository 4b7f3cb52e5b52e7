import { type LedgerRecord, type Result, err, ok, unavailable } from '@sharedos/contracts';
import type { LedgerClaim, LedgerRefusal, OperationKey } from './ledger.ts';
import { encodeLedgerRecord } from './records.ts';
import type { SettledWrites } from './settled-writes.ts';

/** Records of one operation that may wait for the ones before them. */
const WAITING_MAX = 1_024;

/**
 * An owner's hold on an operation whose subject ended at `revision`. Each append waits for the one before; once one is refused
 * the rest are answered from here, so a late acknowledgement or a broker that comes back cannot let a dead owner in again.
 */
export const operationClaim = (writes: SettledWrites, key: OperationKey, natsSubject: string, revision: number): LedgerClaim => {
  let end = revision;
  let refused: LedgerRefusal | undefined;
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();

  const lose = (refusal: LedgerRefusal): Result<never, LedgerRefusal> => {
    refused ??= refusal;
    return err(refused);
  };

  const write = async (record: LedgerRecord): Promise<Result<void, LedgerRefusal>> => {
    if (refused !== undefined) return err(refused);
    const written = await writes.write(natsSubject, encodeLedgerRecord(record), end);
    switch (written.kind) {
      case 'stored':
        end = written.sequence;
        return ok(undefined);
      case 'too_large':
        return err({ kind: 'too_large' });
      case 'full':
        return lose({ kind: 'full' });
      case 'moved':
        return lose({ kind: 'fenced' });
      case 'unknown':
        return lose({ kind: 'unavailable', reason: written.reason });
    }
  };

  return {
    key,
    get held() {
      return refused === undefined;
    },
    append: async (record) => {
      if (refused !== undefined) return err(refused);
      if (waiting >= WAITING_MAX) return unavailable(`${WAITING_MAX} records of the operation wait already`);
      waiting += 1;
      const written = last.then(() => write(record));
      last = written.catch(() => undefined);
      try {
        return await written;
      } catch (error) {
        // A defect leaves the fate of this write open, like a lost answer does.
        lose({ kind: 'unavailable', reason: 'a write broke down' });
        throw error;
      } finally {
        waiting -= 1;
      }
    },
  };
};
