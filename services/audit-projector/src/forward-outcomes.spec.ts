import type { ForwardDelivery } from '@sharedos/bus';
import { type AuditEvent, type LedgerRecord, SCHEMA_HEADER, ok, parseSubject, unavailable } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { forwardOutcomes } from './forward-outcomes.ts';

const alice = { kind: 'human', userId: 'alice' } as const;
const event = (id: string): AuditEvent => ({
  version: '1',
  id,
  type: 'tool.invoked',
  outcome: 'succeeded',
  at: '2026-01-01T12:00:00.000Z',
  traceId: 'trace-1',
  namespaceId: 'w1',
  actor: alice,
  authority: alice,
  owner: alice,
  purpose: 'p1',
});
const noted = (...ids: readonly string[]): LedgerRecord => ({ type: 'noted', at: '2026-01-01T12:00:00.000Z', audit: ids.map(event) });
const OPERATION = 'sharedos.v1.w1.ledger.execution.abc';

const projector = (stores: (id: string) => boolean = () => true) => {
  const published: string[] = [];
  const parked: string[] = [];
  const forward = forwardOutcomes({
    audit: async ({ id }) => {
      published.push(id);
      return stores(id) ? ok(undefined) : unavailable('the stream is away');
    },
    onParked: (what) => void parked.push(what),
  });
  /** Hands one message over. @returns How it was settled. */
  const hand = async (body: unknown, { subject = OPERATION, schema = 'ledger.record/1' } = {}): Promise<string> => {
    let settled = 'not settled';
    const delivery: ForwardDelivery = {
      subject,
      parsed: parseSubject(subject),
      data: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      header: (name) => (name === SCHEMA_HEADER ? schema : undefined),
      sequence: 7,
      redelivered: false,
      deliveryCount: 1,
      done: () => void (settled = 'acknowledged'),
      nak: () => void (settled = 'handed back'),
      term: () => void (settled = 'terminated'),
    };
    await forward(delivery);
    return settled;
  };
  return { published, parked, hand };
};

describe('a record of the ledger', () => {
  it('is acknowledged once every audit record in it is stored, in their order', async () => {
    const { published, hand } = projector();
    expect(await hand(noted('a', 'b', 'c'))).toBe('acknowledged');
    expect(published).toEqual(['a', 'b', 'c']);
  });

  it('is handed back when one of them is not, and comes again under the same ids', async () => {
    let up = false;
    const { published, hand } = projector((id) => up || id !== 'b');
    expect(await hand(noted('a', 'b'))).toBe('handed back');
    up = true;
    expect(await hand(noted('a', 'b'))).toBe('acknowledged');
    expect(published).toEqual(['a', 'b', 'a', 'b']);
  });

  it('without an audit record is acknowledged', async () => {
    const { published, hand } = projector();
    expect(await hand(noted())).toBe('acknowledged');
    expect(await hand('{}', { subject: 'sharedos.v1.w1.ledger.use.g.1', schema: 'ledger.use/1' })).toBe('acknowledged');
    expect(published).toEqual([]);
  });

  it.each([
    ['is no JSON', 'a secret text', 'ledger.record/1'],
    ['is of another schema', noted('a'), 'ledger.use/1'],
    ['names no schema', noted('a'), ''],
    ['has an unknown member', { ...noted('a'), secret: 'a secret text' }, 'ledger.record/1'],
  ])('that %s is parked with its place, and none of its content', async (_, body, schema) => {
    const { published, parked, hand } = projector();
    expect(await hand(body, { schema })).toBe('terminated');
    expect(published).toEqual([]);
    expect(parked).toEqual([expect.stringContaining('ledger record 7')]);
    expect(parked.join()).not.toContain('secret text');
  });

  it('on a subject that is not one of the ledger is terminated', async () => {
    const { published, hand } = projector();
    expect(await hand(noted('a'), { subject: 'sharedos.v1.w1.audit.denied.tool.invoked' })).toBe('terminated');
    expect(await hand(noted('a'), { subject: 'sharedos.v1.w1.ledger.>' })).toBe('terminated');
    expect(published).toEqual([]);
  });
});
