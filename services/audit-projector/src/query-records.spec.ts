import { type Lineage, ok, refused, unavailable } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { REVISION, auditor, carol, projector, record } from './reading.fixture.ts';
import { NOON, alice, fold, recordOf } from './record.fixture.ts';

describe('a query of audit records', () => {
  it('is answered if a root of the namespace granted it, and its decision is on record', async () => {
    const world = projector();
    world.records.append([{ sequence: 4, event: record('a') }], 4);
    expect(await world.query()).toMatchObject({ ok: true, value: { records: [{ sequence: 4, event: { id: 'a' } }], upTo: 4 } });
    expect(world.asked).toEqual([
      {
        actor: auditor,
        authority: alice,
        purpose: 'sharedos.audit',
        question: {
          kind: 'authorize',
          request: { resource: { namespace: 'sharedos', path: ['audit'], owner: alice }, action: 'read' },
          consume: false,
        },
      },
    ]);
    expect(world.written).toMatchObject([{ type: 'authorization.checked', outcome: 'allowed', actor: auditor, authority: alice }]);
  });

  it('may name another root, and nobody who is none: anybody may call a resource sharedos', async () => {
    const world = projector();
    expect(await world.query({ authority: carol })).toMatchObject({ ok: true });
    expect(world.asked.at(-1)?.authority).toEqual(carol);
    expect(await world.query({ authority: auditor })).toMatchObject({ ok: false, error: { code: 'not_a_root' } });
    expect(world.written.at(-1)).toMatchObject({
      type: 'admin.refused',
      outcome: 'denied',
      actor: auditor,
      action: 'records.query',
      reason: 'not_a_root',
    });
  });

  it.each(['w2', '__proto__', 'constructor'])('is refused in a namespace that has no root: %s', async (namespaceId) => {
    const world = projector();
    expect(await world.query({}, alice, namespaceId)).toMatchObject({ ok: false, error: { code: 'not_a_root' } });
    expect(world.asked).toEqual([]);
  });

  it('is refused by the code of its decision, and shows nothing', async () => {
    const world = projector();
    fold(world.records, record('a'));
    world.says = 'denied';
    expect(await world.query()).toMatchObject({ ok: false, error: { code: 'no_matching_grant', retryable: false } });
    expect(world.written).toMatchObject([{ outcome: 'denied', reason: 'no_matching_grant' }]);
  });

  it('is unavailable when nobody can say whether it is allowed, or the decision cannot be recorded', async () => {
    const world = projector();
    world.says = 'nothing';
    expect(await world.query()).toMatchObject({ ok: false, error: { code: 'authority_unavailable', retryable: true } });
    world.says = 'allowed';
    world.auditWorks = false;
    expect(await world.query()).toMatchObject({ ok: false, error: { code: 'audit_unavailable', retryable: true } });
  });

  it('waits for what was recorded before it, its own decision included', async () => {
    const world = projector();
    fold(world.records, record('a'));
    world.head = () => {
      world.folded = async () => (fold(world.records, record('b')), true);
      return Promise.resolve(ok(2));
    };
    expect(await world.query()).toMatchObject({ ok: true, value: { records: [{ event: { id: 'a' } }, { event: { id: 'b' } }], upTo: 2 } });
  });

  it('is unavailable rather than stale', async () => {
    const world = projector();
    world.head = () => Promise.resolve(ok(9));
    world.behind = 'the stream of records is silent';
    expect(await world.query()).toMatchObject({ ok: false, error: { code: 'records_unavailable', retryable: true } });
    world.head = () => Promise.resolve(unavailable('away'));
    expect(await world.query()).toMatchObject({ ok: false, error: { code: 'records_unavailable', retryable: true } });
  });

  it('never shows the records of another namespace', async () => {
    const world = projector();
    fold(world.records, record('theirs', 'w2'));
    expect(await world.query({ traceId: 'trace-1' })).toMatchObject({ ok: true, value: { records: [], upTo: 1 } });
  });

  it('ends a page early when it would not fit one message, and says where the next begins', async () => {
    const world = projector();
    const metadata = { grantIds: ['x'.repeat(600_000)] };
    for (let number = 1; number <= 20; number += 1) fold(world.records, { ...record(`r-${number}`), metadata });
    const seen: string[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const reply = await world.query({ after });
      if (!reply.ok) throw new Error(reply.error.code);
      expect(Buffer.byteLength(JSON.stringify(reply.value))).toBeLessThan(8 * 1024 * 1024);
      seen.push(...reply.value.records.map(({ event }) => event.id));
      after = reply.value.next;
    }
    expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => `r-${index + 1}`));
  });
});

describe('a summary of audit records', () => {
  const used = (id: string, grantId: string) =>
    recordOf(id, { type: 'authorization.checked', outcome: 'allowed', grantId, metadata: { usageTaken: true } });
  const bounded = (grantId: string, maxUses: number): Lineage => {
    const act = { principal: alice, at: NOON, revision: REVISION, eventId: 'event', correlationId: 'command' };
    const capabilities = [{ resource: { namespace: 'files', path: [] }, actions: ['read'], scope: 'descendants' as const }];
    const terms = { id: grantId, namespaceId: 'w1', subject: carol, issuer: alice, capabilities, issuedAt: NOON };
    return { links: [{ grant: { ...terms, constraints: { maxUses } }, issued: act }] };
  };

  it('has the uses of a grant beside what the log allows it', async () => {
    const world = projector();
    fold(world.records, used('a', 'g1'), used('b', 'g1'), used('c', 'g2'), recordOf('d', { type: 'grant.usage.released', grantId: 'g1' }));
    world.lineage = (grantId) => ok(grantId === 'g1' ? bounded('g1', 5) : { links: [] });
    expect(await world.summary()).toMatchObject({
      ok: true,
      value: {
        uses: [
          { grantId: 'g1', taken: 2, released: 1, max: 5 },
          { grantId: 'g2', taken: 1, released: 0 },
        ],
      },
    });
  });

  it('stands by itself where the log cannot be asked', async () => {
    const world = projector();
    fold(world.records, used('a', 'g1'));
    world.lineage = () => refused('log_unavailable', 'no authorizer answered', true);
    const summary = await world.summary();
    expect(summary.ok && summary.value.uses).toEqual([{ grantId: 'g1', taken: 1, released: 0 }]);
  });
});
