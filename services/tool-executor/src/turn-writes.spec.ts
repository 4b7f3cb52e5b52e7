import type { LedgerRecord } from '@sharedos/contracts';
import { type Ledger, type MemoryRecordLog, memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { AuditOutage, TurnLost } from '@sharedos/runtime';
import { describe, expect, it } from 'vitest';
import { NOON, call, claimedBy, key, succeeded } from './turn.fixture.ts';
import { TurnWrites } from './turn-writes.ts';

const noted: LedgerRecord = { type: 'noted', at: NOON, audit: [] };
// Its members are not in the order of the schema, as those of a record that was put together need not be.
const settled = (callId: string): LedgerRecord => ({ audit: [], result: succeeded(call(callId)), callId, at: NOON, type: 'settled' });

const claimedWrites = async (through: (ledger: Ledger) => Ledger = (ledger) => ledger) => {
  const log = memoryRecordLog();
  const ledger = through(memoryLedger({ log, readBackMs: 10 }));
  const claim = await ledger.claim(key, claimedBy('here'));
  if (!claim.ok) throw new Error('not claimed');
  const typesOf = async () => {
    const read = await memoryLedger({ log }).read(key);
    return read.ok ? read.value?.records.map(({ type }) => type) : undefined;
  };
  const losses: string[] = [];
  return { log, ledger, writes: new TurnWrites(ledger, claim.value, () => losses.push('lost')), typesOf, losses };
};
const takenOver = async (ledger: Ledger, record: LedgerRecord): Promise<void> => {
  const read = await ledger.read(key);
  if (!read.ok || read.value === undefined) throw new Error('not read');
  await ledger.resume(key, read.value).append(record);
};
/** The next write is stored, and its acknowledgement and every read until `found` are lost. */
const losesAcknowledgement = (log: MemoryRecordLog): void => {
  const { write, read } = log;
  log.write = async (record) => {
    await write(record);
    log.write = write;
    log.read = async () => ({ ok: false, error: { kind: 'unavailable', reason: 'away' } });
    setTimeout(() => (log.read = read), 30);
    return { kind: 'unknown', reason: 'no acknowledgement' };
  };
};

const ended: LedgerRecord = {
  type: 'ended',
  at: NOON,
  by: 'recovery',
  result: { version: '1', status: 'cancelled', executionId: 'exec-1', traceId: 'trace-1', events: [], startedAt: NOON, completedAt: NOON },
  audit: [],
};

describe('a record that must precede an effect', () => {
  it('is written once; when its fate is unknown, that is an outage', async () => {
    const { log, writes, typesOf } = await claimedWrites();
    log.stall();
    await expect(writes.before(noted)).rejects.toThrow(AuditOutage);
    log.resume();
    await expect(writes.before(noted)).rejects.toThrow(AuditOutage);
    expect(await typesOf()).toEqual(['claimed']);
  });

  it('is refused to an owner that was declared dead', async () => {
    const { ledger, writes } = await claimedWrites();
    await takenOver(ledger, noted);
    await expect(writes.before(noted)).rejects.toThrow(TurnLost);
  });

  it('is an outage when the ledger is full', async () => {
    const { log, writes } = await claimedWrites();
    log.limit(0);
    await expect(writes.before(noted)).rejects.toThrow(AuditOutage);
  });
});

describe('a record of what happened', () => {
  it('is tried until the broker is back', async () => {
    const { log, writes, typesOf } = await claimedWrites();
    log.stall();
    const written = writes.after(settled('c'));
    setTimeout(() => log.resume(), 50);
    expect(await written).toBe('written');
    expect(await typesOf()).toEqual(['claimed', 'settled']);
    await writes.before(noted);
    expect(await typesOf()).toEqual(['claimed', 'settled', 'noted']);
  });

  it('is not written twice when only its acknowledgement was lost', async () => {
    const { log, writes, typesOf } = await claimedWrites();
    losesAcknowledgement(log);
    expect(await writes.after(settled('c'))).toBe('written');
    expect(await typesOf()).toEqual(['claimed', 'settled']);
  });

  it('follows a record before an effect whose fate was unknown', async () => {
    const { log, writes, typesOf } = await claimedWrites();
    losesAcknowledgement(log);
    await expect(writes.before(noted)).rejects.toThrow(AuditOutage);
    expect(await writes.after(settled('c'))).toBe('written');
    expect(await typesOf()).toEqual(['claimed', 'noted', 'settled']);
  });

  it('is refused to an owner that was declared dead, also one that had lost the broker', async () => {
    const { ledger, writes } = await claimedWrites();
    await takenOver(ledger, ended);
    await expect(writes.after(settled('c'))).rejects.toThrow(TurnLost);

    const away = await claimedWrites();
    away.log.stall();
    const late = writes.after(settled('c'));
    const lost = away.writes.after(settled('c'));
    away.log.resume();
    await takenOver(away.ledger, ended);
    await expect(late).rejects.toThrow(TurnLost);
    await lost.catch((error: unknown) => expect(error).toBeInstanceOf(TurnLost));
  });

  it('is too_large for its writer to make smaller, and the turn goes on', async () => {
    const { writes, typesOf } = await claimedWrites();
    expect(
      await writes.after({ type: 'settled', at: NOON, callId: 'c', result: succeeded(call('c'), 'x'.repeat(6 * 1024 * 1024)), audit: [] }),
    ).toBe('too_large');
    expect(await writes.after(settled('c'))).toBe('written');
    expect(await typesOf()).toEqual(['claimed', 'settled']);
  });
});

describe('a record that nobody waits for', () => {
  it('once it fails, the turn is lost: its owner is told, and nothing is written or told any more', async () => {
    const { ledger, writes, typesOf, losses } = await claimedWrites();
    await takenOver(ledger, noted);
    const told: string[] = [];
    const behind = writes.behind(settled('c'));
    writes.afterwards(() => told.push('the call is done'));
    await expect(behind).rejects.toThrow(TurnLost);
    await expect(writes.after(ended)).rejects.toThrow(TurnLost);
    writes.afterwards(() => told.push('the turn is done'));
    await expect(writes.settled('c')).rejects.toThrow(TurnLost);
    expect([told, losses]).toEqual([[], ['lost']]);
    expect(await typesOf()).toEqual(['claimed', 'noted']);
  });

  it('also when it does not fit after all', async () => {
    const { writes, typesOf, losses } = await claimedWrites();
    const large = settled('c');
    const result = succeeded(call('c'), 'x'.repeat(6 * 1024 * 1024));
    await expect(writes.behind({ ...large, result } as LedgerRecord)).rejects.toThrow(TurnLost);
    await expect(writes.before(noted)).rejects.toThrow(TurnLost);
    expect([await typesOf(), losses]).toEqual([['claimed'], ['lost']]);
  });
});

it('what is told after the writes is told in order, and at once where none is under way', async () => {
  const { writes } = await claimedWrites();
  const told: string[] = [];
  writes.afterwards(() => told.push('first'));
  expect(told).toEqual(['first']);
  const one = writes.after(settled('a'));
  writes.afterwards(() => told.push('after one'));
  const two = writes.before(noted);
  writes.afterwards(() => told.push('after two'));
  expect(told).toEqual(['first']);
  await Promise.all([one, two]);
  // Waits for the writes as well, and is told after whatever else does.
  await new Promise<void>((resolve) => writes.afterwards(resolve));
  expect(told).toEqual(['first', 'after one', 'after two']);
});

it('writes are made one after the other, in the order they were asked', async () => {
  const { writes, ledger } = await claimedWrites();
  await Promise.all([writes.after(settled('a')), writes.before(noted), writes.after(settled('b'))]);
  const read = await ledger.read(key);
  expect(read.ok && read.value?.records.map((record) => ('callId' in record ? record.callId : record.type))).toEqual([
    'claimed',
    'a',
    'noted',
    'b',
  ]);
  expect(await writes.settled('b')).toEqual(succeeded(call('b')));
  expect(await writes.settled('c')).toBeUndefined();
});
