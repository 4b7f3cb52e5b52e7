import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chainAfter, chainStart } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { alice, fold, recordOf, recordStore } from './record.fixture.ts';
import type { RecordFilter } from './record-queries.ts';
import type { RecordStore } from './record-store.ts';

const bob = { kind: 'agent', agentId: 'bob' } as const;
const page = { after: 0, limit: 10 };
const idsOf = (store: RecordStore, filter: RecordFilter, namespaceId = 'w1') =>
  store.query(namespaceId, filter, page).records.map(({ event }) => event.id);

describe('looking records up', () => {
  it('finds them by trace, operation, message, turn, type and outcome, in the order of the stream', () => {
    const store = recordStore();
    fold(
      store,
      recordOf('a', { operationId: 'call-1', metadata: { turnId: 't1' } }),
      recordOf('b', { traceId: 'trace-2', outcome: 'denied' }),
      recordOf('c', { messageId: 'm-1', type: 'message.sent', metadata: { turnId: 't1' } }),
    );
    expect(idsOf(store, {})).toEqual(['a', 'b', 'c']);
    expect(idsOf(store, { traceId: 'trace-1' })).toEqual(['a', 'c']);
    expect(idsOf(store, { operationId: 'call-1' })).toEqual(['a']);
    expect(idsOf(store, { operationId: 'm-1' })).toEqual(['c']);
    expect(idsOf(store, { turnId: 't1' })).toEqual(['a', 'c']);
    expect(idsOf(store, { turnId: 't1', type: 'message.sent' })).toEqual(['c']);
    expect(idsOf(store, { outcome: 'denied' })).toEqual(['b']);
  });

  it('finds them by grant, actor and reason', () => {
    const store = recordStore();
    fold(store, recordOf('a', { grantId: 'g1' }), recordOf('b', { actor: bob }), recordOf('c', { reason: 'no_matching_grant' }));
    expect(idsOf(store, { grantId: 'g1' })).toEqual(['a']);
    expect(idsOf(store, { actor: bob })).toEqual(['b']);
    expect(idsOf(store, { reason: 'no_matching_grant' })).toEqual(['c']);
    expect(idsOf(store, { actor: bob, reason: 'no_matching_grant' })).toEqual([]);
  });

  it('finds a resource and all below it, and none that only begins alike', () => {
    const store = recordStore();
    const at = (namespace: string, ...path: string[]) => ({ resource: { namespace, path, owner: alice } });
    fold(
      store,
      recordOf('root', at('files')),
      recordOf('it', at('files', 'cell-3')),
      recordOf('below', at('files', 'cell-3', 'a.b')),
      recordOf('alike', at('files', 'cell-30')),
      recordOf('dotted', at('files', 'cell-3.x')),
      recordOf('elsewhere', at('repo', 'cell-3')),
      recordOf('none'),
    );
    expect(idsOf(store, { resource: { namespace: 'files', path: ['cell-3'] } })).toEqual(['it', 'below']);
    expect(idsOf(store, { resource: { namespace: 'files', path: [] } })).toEqual(['root', 'it', 'below', 'alike', 'dotted']);
  });

  it('finds a time, from its first instant up to its last, though records are not in order of their instants', () => {
    const store = recordStore();
    const at = (second: number) => ({ at: `2026-01-01T12:00:${String(second).padStart(2, '0')}.000Z` });
    fold(store, recordOf('a', at(5)), recordOf('b', at(1)), recordOf('c', at(3)), recordOf('d', at(9)));
    const from = (since: number, until?: number) => ({ since: at(since).at, ...(until === undefined ? {} : { until: at(until).at }) });
    expect(idsOf(store, from(3))).toEqual(['a', 'c', 'd']);
    expect(idsOf(store, from(3, 9))).toEqual(['a', 'c']);
    expect(idsOf(store, from(10))).toEqual([]);
  });

  it('never shows one namespace the records of another', () => {
    const store = recordStore();
    fold(store, recordOf('a', { namespaceId: 'w2' }));
    expect(idsOf(store, { traceId: 'trace-1' })).toEqual([]);
    expect(idsOf(store, {}, 'w2')).toEqual(['a']);
    expect(store.chained('w1', 0, 10)).toEqual([]);
  });

  it('takes what is asked for as a value, whatever is in it', () => {
    const store = recordStore();
    fold(store, recordOf('a', { traceId: `' OR 1=1 --` }), recordOf('b'));
    expect(idsOf(store, { traceId: `' OR 1=1 --` })).toEqual(['a']);
    expect(idsOf(store, { reason: `' OR 1=1 --` })).toEqual([]);
  });

  it('folds a record that was delivered twice once, and counts its second copy in the chain', () => {
    const store = recordStore();
    fold(store, recordOf('a'), recordOf('a'), recordOf('a', { namespaceId: 'w2' }));
    expect(idsOf(store, {})).toEqual(['a']);
    expect(store.chained('w1', 0, 10).map(({ count }) => count)).toEqual([1, 2]);
  });

  it('pages, and says where the next page begins', () => {
    const store = recordStore();
    fold(store, recordOf('a'), recordOf('b'), recordOf('c'));
    const first = store.query('w1', {}, { after: 0, limit: 2 });
    expect(first.records.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(first.next).toBe(2);
    expect(store.query('w1', {}, { after: 2, limit: 2 })).toEqual({ records: [{ sequence: 3, event: recordOf('c') }] });
  });

  it('keeps the newest, and says up to where it let go', () => {
    const store = recordStore(100);
    for (let index = 0; index < 250; index += 1) fold(store, recordOf(`r-${index}`));
    const kept = store.query('w1', {}, { after: 0, limit: 500 }).records;
    expect(kept.at(-1)?.sequence).toBe(250);
    expect(kept.length).toBeGreaterThanOrEqual(100);
    expect(kept.length).toBeLessThanOrEqual(102);
    expect(store.heldAfter('w1')).toBe((kept[0]?.sequence ?? 0) - 1);
  });

  it('lets go of nothing for what another namespace records, and holds each by its own limit', () => {
    const limits = new Map([['short', 10]]);
    const store = recordStore(100, ':memory:', 'stream-1', limits);
    fold(store, recordOf('quiet', { namespaceId: 'quiet' }));
    for (let index = 0; index < 300; index += 1) fold(store, recordOf(`r-${index}`), recordOf(`s-${index}`, { namespaceId: 'short' }));
    const held = (namespaceId: string) => store.query(namespaceId, {}, { after: 0, limit: 500 }).records.length;
    expect(['quiet', 'w1', 'short'].map(held)).toEqual([1, expect.any(Number), 10]);
    expect(held('w1')).toBeGreaterThanOrEqual(100);
    expect(held('w1')).toBeLessThanOrEqual(102);
    expect([store.heldAfter('quiet'), store.heldAfter('nobody')]).toEqual([0, 0]);
    expect(store.heldAfter('short')).toBe(store.chained('short', 0, 1)[0]!.sequence - 2);
  });
});

describe('the chain of a namespace', () => {
  it('is the rule applied to every record of the stream, each namespace by itself', () => {
    const store = recordStore();
    fold(store, recordOf('a'), recordOf('x', { namespaceId: 'w2' }), recordOf('b'));
    const first = chainAfter(chainStart('w1'), 1, recordOf('a'));
    const second = chainAfter(first, 3, recordOf('b'));
    expect(store.chained('w1', 0, 10).map(({ chain }) => chain)).toEqual([first, second]);
    expect(store.tips()).toEqual([
      { namespaceId: 'w1', count: 2, sequence: 3, chain: second },
      { namespaceId: 'w2', count: 1, sequence: 2, chain: chainAfter(chainStart('w2'), 2, recordOf('x', { namespaceId: 'w2' })) },
    ]);
    expect(store.chainAt('w1', 1)?.chain).toBe(first);
    expect(store.chainAt('w1', 9)).toBeUndefined();
  });
});

describe('a summary', () => {
  it('counts decisions with outages apart, reasons, and uses taken', () => {
    const store = recordStore();
    const decision = (id: string, outcome: 'allowed' | 'denied', over: object = {}) =>
      recordOf(id, { type: 'authorization.checked', outcome, ...over });
    fold(
      store,
      decision('a', 'allowed', { grantId: 'g1', metadata: { usageTaken: true } }),
      decision('b', 'allowed', { grantId: 'g1', metadata: { usageTaken: true } }),
      decision('c', 'allowed', { grantId: 'g2' }),
      decision('d', 'denied', { reason: 'no_matching_grant' }),
      decision('e', 'denied', { reason: 'usage_store_unavailable', metadata: { failClosed: true } }),
      decision('e', 'denied', { reason: 'usage_store_unavailable', metadata: { failClosed: true } }),
      recordOf('f', { outcome: 'denied', reason: 'no_matching_grant' }),
      recordOf('g', { type: 'grant.usage.released', grantId: 'g1' }),
    );
    expect(store.summary('w1', {})).toEqual({
      records: 7,
      decisions: { allowed: 3, denied: 1, outages: 1 },
      reasons: [
        { reason: 'no_matching_grant', type: 'authorization.checked', outcome: 'denied', outage: false, count: 1 },
        { reason: 'no_matching_grant', type: 'tool.invoked', outcome: 'denied', outage: false, count: 1 },
        { reason: 'usage_store_unavailable', type: 'authorization.checked', outcome: 'denied', outage: true, count: 1 },
      ],
      uses: [{ grantId: 'g1', taken: 2, released: 1 }],
      upTo: 8,
    });
    expect(store.summary('w1', { since: '2026-01-01T12:00:00.001Z' }).records).toBe(0);
    expect(store.summary('elsewhere', {})).toMatchObject({ records: 0, uses: [] });
  });
});

describe('a read model in a file', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'records-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('goes on where it stood, and folds nothing twice', () => {
    const path = join(folder, 'records.db');
    const before = recordStore(100, path);
    fold(before, recordOf('a'), recordOf('b'));
    before.close();
    const store = recordStore(100, path);
    expect(store.position).toBe(2);
    store.append(
      [
        { sequence: 2, event: recordOf('b') },
        { sequence: 3, event: recordOf('c') },
      ],
      3,
    );
    expect(store.chained('w1', 0, 10).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    store.close();
  });

  it('is emptied when the stream is another one', () => {
    const path = join(folder, 'records.db');
    const before = recordStore(100, path, 'stream-1');
    fold(before, recordOf('a'));
    before.close();
    const store = recordStore(100, path, 'stream-2');
    expect(store.position).toBe(0);
    expect(store.tips()).toEqual([]);
    store.close();
  });

  it('is, folded again from the beginning, the one that was folded as it happened', () => {
    const events = Array.from({ length: 300 }, (_, index) =>
      recordOf(`r-${index % 250}`, { namespaceId: `w${index % 3}`, traceId: `t-${index % 7}`, metadata: { turnId: `turn-${index % 5}` } }),
    );
    const [live, again] = [recordStore(), recordStore()];
    for (const event of events) fold(live, event);
    fold(again, ...events);
    const everything = (store: RecordStore) =>
      ['w0', 'w1', 'w2'].map((name) => [store.chained(name, 0, 500), store.query(name, {}, { after: 0, limit: 500 })]);
    expect(everything(again)).toEqual(everything(live));
    expect(again.tips()).toEqual(live.tips());
  });
});
