import type { AuditEvent } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { AuditReadModel } from './read-model.ts';

const alice = { kind: 'human', userId: 'alice' } as const;
const record = (id: string, over: Partial<AuditEvent> = {}): AuditEvent => ({
  version: '1',
  id,
  type: 'tool.invoked',
  outcome: 'succeeded',
  at: '2026-01-01T12:00:00.000Z',
  traceId: 'trace-1',
  namespaceId: 'demo',
  actor: alice,
  authority: alice,
  owner: alice,
  purpose: 'p',
  ...over,
});
const page = { after: 0, limit: 10 };
const idsOf = (model: AuditReadModel, filter: Parameters<AuditReadModel['query']>[1], over = page) =>
  model.query('demo', filter, over).records.map(({ event }) => event.id);

describe('the read model of audit records', () => {
  it('finds records by trace, operation, turn, type and outcome, in order of the stream', () => {
    const model = new AuditReadModel(100);
    model.apply(1, record('a', { operationId: 'call-1', metadata: { turnId: 't1' } }));
    model.apply(2, record('b', { traceId: 'trace-2', outcome: 'denied' }));
    model.apply(5, record('c', { messageId: 'm-1', type: 'message.sent', metadata: { turnId: 't1' } }));
    expect(idsOf(model, {})).toEqual(['a', 'b', 'c']);
    expect(idsOf(model, { traceId: 'trace-1' })).toEqual(['a', 'c']);
    expect(idsOf(model, { operationId: 'call-1' })).toEqual(['a']);
    expect(idsOf(model, { operationId: 'm-1' })).toEqual(['c']);
    expect(idsOf(model, { turnId: 't1', type: 'message.sent' })).toEqual(['c']);
    expect(idsOf(model, { outcome: 'denied' })).toEqual(['b']);
  });

  it('never shows one namespace the records of another', () => {
    const model = new AuditReadModel(100);
    model.apply(1, record('a', { namespaceId: 'other' }));
    expect(idsOf(model, { traceId: 'trace-1' })).toEqual([]);
  });

  it('folds a record that was delivered twice once', () => {
    const model = new AuditReadModel(100);
    model.apply(1, record('a'));
    model.apply(2, record('a'));
    expect(model.query('demo', {}, page).records).toHaveLength(1);
    expect(model.position).toBe(2);
  });

  it('pages without losing or repeating a record', () => {
    const model = new AuditReadModel(100);
    for (let sequence = 1; sequence <= 25; sequence += 1) model.apply(sequence, record(`r${sequence}`));
    const seen: string[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const { records, next } = model.query('demo', {}, { after, limit: 10 });
      seen.push(...records.map(({ event }) => event.id));
      after = next;
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => `r${index + 1}`));
  });

  it('forgets the oldest records beyond its bound, and their lookups with them', () => {
    const model = new AuditReadModel(3);
    for (let sequence = 1; sequence <= 5; sequence += 1) model.apply(sequence, record(`r${sequence}`, { operationId: `call-${sequence}` }));
    expect(idsOf(model, {})).toEqual(['r3', 'r4', 'r5']);
    expect(idsOf(model, { operationId: 'call-1' })).toEqual([]);
    expect(idsOf(model, { traceId: 'trace-1' })).toEqual(['r3', 'r4', 'r5']);
  });
});
