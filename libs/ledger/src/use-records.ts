import { type Result, type Unavailable, type UseClaim, type UseReleased, UseReleasedMessage, ok, unavailable } from '@sharedos/contracts';
import { useOfSubject } from './ledger-names.ts';
import type { SpentUseClaim } from './ledger.ts';
import type { StoredRecord } from './record-log.ts';
import { decodeUseClaim, decodeUseReleased } from './records.ts';

/** One record about a use: it was claimed, or given back. */
export type UseRecord =
  | { readonly type: 'claimed'; readonly namespaceId: string; readonly use: UseClaim }
  | { readonly type: 'released'; readonly namespaceId: string; readonly use: UseReleased };

/** How one ordinal stands by the records of its subject. */
export interface UseState {
  /** Sequence of the last record; 0 for none. */
  readonly end: number;
  /** Who holds it now. */
  readonly holder?: UseClaim;
  /** Operations that gave it back. */
  readonly released: ReadonlySet<string>;
}

/** Reads a record of a use, whose subject and body must say the same. */
export const readUseRecord = (record: StoredRecord): Result<UseRecord, Unavailable> => {
  const isClaim = record.schema !== UseReleasedMessage.name;
  const use = isClaim ? decodeUseClaim(record) : decodeUseReleased(record);
  if (!use.ok) return unavailable(`use ${record.sequence} of the ledger cannot be read: ${use.error}`);
  const named = useOfSubject(record.natsSubject);
  if (named === undefined || named.grantId !== use.value.grantId || named.ordinal !== use.value.ordinal)
    return unavailable(`use ${record.sequence} of the ledger is not the one its subject names`);
  const { namespaceId } = named;
  return ok(isClaim ? { type: 'claimed', namespaceId, use: use.value } : { type: 'released', namespaceId, use: use.value });
};

/** Folds the records of one ordinal, in their order. */
export const foldUse = (records: readonly StoredRecord[]): Result<UseState, Unavailable> => {
  let holder: UseClaim | undefined;
  const released = new Set<string>();
  for (const record of records) {
    const read = readUseRecord(record);
    if (!read.ok) return read;
    if (read.value.type === 'claimed') {
      holder = read.value.use;
    } else {
      released.add(read.value.use.operation);
      if (holder?.operation === read.value.use.operation) holder = undefined;
    }
  }
  return ok({ end: records.at(-1)?.sequence ?? 0, released, ...(holder === undefined ? {} : { holder }) });
};

/** What is spent by all records of uses, in the order in which it was spent. */
export const spentUses = (records: readonly StoredRecord[]): Result<readonly SpentUseClaim[], Unavailable> => {
  const spent = new Map<string, SpentUseClaim>();
  for (const record of records) {
    const read = readUseRecord(record);
    if (!read.ok) return read;
    const { type, namespaceId, use } = read.value;
    if (type === 'claimed') spent.set(record.natsSubject, { namespaceId, use });
    else if (spent.get(record.natsSubject)?.use.operation === use.operation) spent.delete(record.natsSubject);
  }
  return ok([...spent.values()]);
};
