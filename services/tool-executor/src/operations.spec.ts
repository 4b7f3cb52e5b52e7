import { type Address, type AuditEvent, type LedgerRecord, type OperationList, type OperationResolve, ok } from '@sharedos/contracts';
import { type Ledger, type OperationKey, memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { listOperations } from './list-operations.ts';
import type { Ports } from './ports.ts';
import { getTurn } from './read-turns.ts';
import { resolveOperation } from './resolve-operation.ts';
import { showOperation } from './show-operation.ts';
import { NOON, alice, claimedBy, context, key, scout, succeeded } from './turn.fixture.ts';

const root = { kind: 'human', userId: 'root' } as const;
const stranger = { kind: 'human', userId: 'stranger' } as const;

const admitted = (callId: string): LedgerRecord => ({ type: 'admitted', at: NOON, callId, tool: 'files.append', audit: [] });
const settled = (callId: string, late?: true): LedgerRecord => ({
  type: 'settled',
  at: NOON,
  callId,
  result: succeeded({ id: callId, tool: 'files.append', arguments: {}, traceId: 'trace-1', requestedAt: NOON }),
  audit: [],
  ...(late === undefined ? {} : { late }),
});
const abortedEvent = (callId: string): AuditEvent => {
  const { now: _, enabledToolNamespaces: __, ...frame } = context;
  return {
    version: '1',
    id: `aborted-${callId}`,
    at: NOON,
    type: 'tool.invoked',
    outcome: 'failed',
    reason: 'operation_aborted',
    operationId: callId,
    ...frame,
  };
};
const cancelled = (...unknown: readonly string[]): LedgerRecord => ({
  type: 'ended',
  at: NOON,
  by: 'recovery',
  result: {
    version: '1',
    status: 'cancelled',
    executionId: 'exec-1',
    traceId: 'trace-1',
    events: [],
    startedAt: NOON,
    completedAt: NOON,
    error: { code: 'turn_cancelled', message: 'The turn was interrupted.', retryable: false },
  },
  audit: unknown.map(abortedEvent),
});

/** A ledger with one turn of alice, of which `call-2` is unknown, and an executor that serves its namespace. */
const executor = async (through: (ledger: Ledger) => Ledger = (ledger) => ledger) => {
  const log = memoryRecordLog();
  const plain = memoryLedger({ log, readBackMs: 10 });
  const write = async (of: OperationKey, ...records: readonly LedgerRecord[]) => {
    const [first, ...more] = records as [LedgerRecord, ...LedgerRecord[]];
    const claim = await plain.claim(of, first);
    if (!claim.ok) throw new Error('this operation was written before');
    for (const record of more) expect(await claim.value.append(record)).toEqual(ok(undefined));
  };
  await write(key, claimedBy('executor'), admitted('call-1'), settled('call-1'), admitted('call-2'), cancelled('call-2'));
  const recorded: AuditEvent[] = [];
  const ports = {
    ledger: through(plain),
    roots: { w1: [root] },
    authority: { open: async () => ({ ok: false, error: { code: 'authority_unavailable', reason: 'silence' } }) },
    audit: async (event: AuditEvent) => ok(void recorded.push(event)),
    clock: () => Date.parse(NOON),
    ids: countingIds('id'),
  } as unknown as Ports;
  const delivery = (verb: 'operation.show' | 'operation.list' | 'operation.resolve' | 'turn.get', principal: Address) => ({
    verb,
    principal,
    namespaceId: 'w1',
    rest: [],
    signal: new AbortController().signal,
  });
  const name = { kind: 'execution', requester: alice, operationId: 'exec-1' } as const;
  return {
    recorded,
    write,
    show: (by: Address, more: object = {}) => showOperation(ports)({ ...name, ...more }, delivery('operation.show', by)),
    list: (asked: OperationList = {}, by: Address = root) => listOperations(ports)(asked, delivery('operation.list', by)),
    resolve: (more: Partial<OperationResolve> = {}, by: Address = root) =>
      resolveOperation(ports)({ ...name, callId: 'call-2', outcome: 'happened', ...more }, delivery('operation.resolve', by)),
    turn: () => getTurn(ports)({ executionId: 'exec-1' }, delivery('turn.get', alice)),
    records: async () => {
      const read = await plain.read(key);
      return read.ok ? (read.value?.records ?? []) : [];
    },
  };
};

const refusedWith = (code: string) => ({ ok: false, error: { code } });

describe('an operation shown to an operator', () => {
  it('says what is unknown and how it came to that, without arguments or outputs', async () => {
    const world = await executor();
    const shown = await world.show(root);
    expect(shown).toMatchObject({
      ok: true,
      value: {
        operation: {
          state: 'unknown',
          requester: alice,
          operationId: 'exec-1',
          agent: scout,
          status: 'cancelled',
          unknownCalls: ['call-2'],
        },
        timeline: [
          { what: 'claimed', by: 'executor' },
          { what: 'admitted', callId: 'call-1', tool: 'files.append' },
          { what: 'settled', callId: 'call-1', status: 'succeeded' },
          { what: 'admitted', callId: 'call-2', tool: 'files.append' },
          { what: 'ended', status: 'cancelled', code: 'turn_cancelled', by: 'recovery' },
        ],
      },
    });
    expect(JSON.stringify(shown)).not.toContain('output');
  });
  it('is refused to anybody else, and to its own requester', async () => {
    const world = await executor();
    for (const by of [stranger, alice]) expect((await world.show(by)).ok).toBe(false);
    expect((await world.list({}, alice)).ok).toBe(false);
  });
  it('is not found under another requester, kind or id', async () => {
    const world = await executor();
    for (const other of [{ requester: root }, { kind: 'message' }, { operationId: 'exec-2' }])
      expect(await world.show(root, other)).toMatchObject(refusedWith('operation_not_found'));
  });
});

describe('operations listed for an operator', () => {
  const at = (id: string, kind: OperationKey['kind'] = 'execution'): OperationKey => ({ ...key, kind, id });
  const listed = async (world: Awaited<ReturnType<typeof executor>>, asked: OperationList) => {
    const found = await world.list(asked);
    if (!found.ok) throw new Error(found.error.code);
    // Records of one millisecond are in no particular order.
    const byId = found.value.operations.toSorted((a, b) => (a.operationId ?? '').localeCompare(b.operationId ?? ''));
    return byId.map(({ operationId, state }) => [operationId, state]);
  };
  const claimOf = (operationId: string): LedgerRecord => ({ ...claimedBy('executor'), operationId }) as LedgerRecord;

  it('are told apart by their state, whatever their last record is', async () => {
    const world = await executor();
    await world.write(at('runs'), claimOf('runs'), admitted('a'));
    await world.write(at('done'), claimOf('done'), admitted('a'), settled('a'), cancelled());
    await world.write(at('late'), claimOf('late'), admitted('a'), cancelled('a'), settled('a', true));
    await world.write(at('half'), claimOf('half'), admitted('a'), admitted('b'), cancelled('a', 'b'), settled('a', true));
    await world.write(at('gone'), claimOf('gone'), cancelled(), { type: 'expired', at: NOON, endedAt: NOON });
    expect(await listed(world, { state: 'running' })).toEqual([['runs', 'running']]);
    expect(await listed(world, { state: 'unknown' })).toEqual([
      ['exec-1', 'unknown'],
      ['half', 'unknown'],
    ]);
    expect(await listed(world, { state: 'ended' })).toEqual([
      ['done', 'ended'],
      ['late', 'ended'],
    ]);
    expect(await listed(world, { state: 'expired' })).toMatchObject([[undefined, 'expired']]);
    expect(await listed(world, {})).toHaveLength(6);
  });
  it('are those asked for, and it is said when there are more', async () => {
    const world = await executor();
    await world.write(at('m-1', 'message'), claimOf('m-1'));
    expect(await listed(world, { kind: 'message' })).toEqual([['m-1', 'running']]);
    expect(await listed(world, { requester: root })).toEqual([]);
    expect(await listed(world, { since: '2999-01-01T00:00:00Z' })).toEqual([]);
    expect(await world.list({ limit: 1 })).toMatchObject({ ok: true, value: { operations: [{}], more: true } });
    expect(await world.list()).toMatchObject({ ok: true, value: { more: false } });
  });
});

describe('a finding of an operator', () => {
  it('is recorded with its audit record in one, and is what is known from then on', async () => {
    const world = await executor();
    const shown = await world.resolve({ output: { version: 3 }, note: 'it is in the folder' });
    expect(shown).toMatchObject({ ok: true, value: { operation: { state: 'ended', unknownCalls: [] } } });
    expect((await world.records()).at(-1)).toMatchObject({
      type: 'resolved',
      callId: 'call-2',
      outcome: 'happened',
      output: { version: 3 },
      by: root,
      audit: [
        {
          type: 'admin.changed',
          actor: root,
          action: 'operation.resolve',
          operationId: 'call-2',
          traceId: 'trace-1',
          resource: { namespace: 'sharedos.admin', path: ['ledger'] },
          metadata: { about: 'exec-1', found: 'happened', turnId: 'turn-1' },
        },
      ],
    });
    expect(JSON.stringify((await world.records()).at(-1)).match(/"audit":.*/)?.[0]).not.toMatch(/version":3|folder/);
    expect(await world.turn()).toMatchObject({
      ok: true,
      value: {
        summary: { state: 'cancelled' },
        result: { status: 'cancelled', metadata: { resolved: [{ callId: 'call-2', outcome: 'happened', output: { version: 3 } }] } },
        timeline: expect.arrayContaining([expect.objectContaining({ what: 'resolved', outcome: 'happened', by: root })]) as unknown,
      },
    });
  });
  it('changes nothing the second time, also where the operator names the revision from before', async () => {
    const world = await executor();
    const before = await world.show(root);
    const expectedLedgerRevision = before.ok ? before.value.ledgerRevision : 0;
    const first = await world.resolve({ expectedLedgerRevision });
    expect(first.ok).toBe(true);
    expect(await world.resolve({ expectedLedgerRevision })).toEqual(first);
    expect(await world.records()).toHaveLength(6);
  });
  it('is refused where another stands', async () => {
    const world = await executor();
    await world.resolve();
    expect(await world.resolve({ outcome: 'did_not_happen' })).toMatchObject(refusedWith('operation_resolved_otherwise'));
    expect(world.recorded.at(-1)).toMatchObject({ type: 'admin.refused', reason: 'operation_resolved_otherwise', operationId: 'call-2' });
    expect(await world.records()).toHaveLength(6);
  });
  it.each([
    ['has an answer', 'call-1'],
    ['never was', 'call-3'],
  ])('is refused of a call that %s', async (_, callId) => {
    const world = await executor();
    expect(await world.resolve({ callId })).toMatchObject(refusedWith('operation_not_unknown'));
    expect(await world.records()).toHaveLength(5);
  });
  it('is refused when anything was recorded since the operator looked', async () => {
    const world = await executor();
    expect(await world.resolve({ expectedLedgerRevision: 1 })).toMatchObject(refusedWith('version_conflict'));
    expect(await world.records()).toHaveLength(5);
  });
  it('loses to what is recorded at the same moment', async () => {
    const world = await executor((ledger) => ({
      ...ledger,
      read: async (of) => {
        const read = await ledger.read(of);
        if (read.ok && read.value?.records.length === 5) await ledger.resume(of, read.value).append(settled('call-2', true));
        return read;
      },
    }));
    expect(await world.resolve({ outcome: 'did_not_happen' })).toMatchObject({
      ok: false,
      error: { code: 'operation_moved', retryable: true },
    });
    expect((await world.records()).map(({ type }) => type).at(-1)).toBe('settled');
    expect(await world.resolve({ outcome: 'did_not_happen' })).toMatchObject(refusedWith('operation_not_unknown'));
  });
  it('is for whoever administers the ledger alone: not for the requester, the agent, or anybody while nobody can say', async () => {
    const world = await executor();
    for (const by of [alice, scout, stranger]) expect((await world.resolve({}, by)).ok).toBe(false);
    expect(await world.records()).toHaveLength(5);
  });
  it('of an operation that is not there is refused', async () => {
    const world = await executor();
    expect(await world.resolve({ operationId: 'exec-2' })).toMatchObject(refusedWith('operation_not_found'));
  });
});
