import type { Bus, Delivery } from '@sharedos/bus';
import {
  type Address,
  type AuditEvent,
  type AuthorityQuestion,
  type RecordsQuery,
  type RecordsReplay,
  type Result,
  type Unavailable,
  err,
  ok,
  revisionOf,
  unavailable,
} from '@sharedos/contracts';
import { authorizationChecked } from '@sharedos/kernel';
import { countingIds, manualClock } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { logQuestions } from './ask-log.ts';
import type { Ports } from './ports.ts';
import { queryRecords } from './query-records.ts';
import { NOON, alice, fold, recordOf, recordStore, sealKeys } from './record.fixture.ts';
import { replayRecords } from './replay-records.ts';

const carol = { kind: 'human', userId: 'carol' } as const;
const auditor = { kind: 'human', userId: 'auditor' } as const;
const REVISION = revisionOf('log', 3);
const record = (id: string, namespaceId = 'w1') => recordOf(id, { namespaceId, type: 'turn.ended' });

const projector = () => {
  const records = recordStore();
  const written: AuditEvent[] = [];
  const asked: { actor: Address; authority: Address; purpose: string; question: AuthorityQuestion }[] = [];
  const world = {
    records,
    written,
    /** Whom the authorizers were asked about, and what. */
    asked,
    says: 'allowed' as 'allowed' | 'denied' | 'nothing',
    head: (): Promise<Result<number, Unavailable>> => Promise.resolve(ok(records.position)),
    behind: undefined as string | undefined,
    building: undefined as string | undefined,
    folded: async (_timeoutMs: number): Promise<boolean> => false,
    clock: manualClock(NOON),
    auditWorks: true,
    query: (body: RecordsQuery = {}, principal: Address = auditor, namespaceId = 'w1') => {
      const delivery: Delivery = { verb: 'records.query', namespaceId, principal, rest: [], signal: new AbortController().signal };
      return queryRecords(ports)(body, delivery);
    },
    replay: (body: RecordsReplay, principal: Address = auditor, namespaceId = 'w1') => {
      const delivery: Delivery = { verb: 'records.replay', namespaceId, principal, rest: [], signal: new AbortController().signal };
      return replayRecords(ports)(body, delivery);
    },
  };
  const ports: Ports = {
    authority: {
      open: async () =>
        world.says === 'nothing'
          ? err({ code: 'authority_unavailable', reason: 'silence' })
          : ok({
              status: 'resolved',
              token: 't',
              revision: REVISION,
              admittedAt: NOON,
              validUntil: NOON,
              snapshot: { hash: 'a'.repeat(64), grantIds: [], grantCount: 0, loadedAt: NOON },
            }),
      decide: async (_, context, question, [id]) => {
        if (question.kind !== 'authorize') throw new Error('a query is authorized plainly');
        asked.push({ actor: context.actor, authority: context.authority, purpose: context.purpose, question });
        const allowed = world.says === 'allowed';
        const code = allowed ? 'allowed' : 'no_matching_grant';
        const event = authorizationChecked(
          { id, at: Date.parse(NOON), context },
          { request: question.request, decided: { decision: { allowed, reasonCode: code } }, consume: false },
        );
        return ok({ revision: REVISION, status: allowed ? 'allowed' : 'denied', code, audit: [event] });
      },
    },
    log: logQuestions({} as Bus, 1),
    records,
    keys: sealKeys(),
    folded: (timeoutMs) => world.folded(timeoutMs),
    head: () => world.head(),
    behind: () => world.behind,
    building: () => world.building,
    roots: { w1: [alice, carol] },
    audit: async (event) => {
      if (!world.auditWorks) return unavailable('the stream is away');
      written.push(event);
      return ok(undefined);
    },
    clock: () => world.clock.now(),
    ids: countingIds('id'),
    onParked: () => undefined,
  };
  return world;
};

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

describe('a replay of audit records', () => {
  const page = async (world: ReturnType<typeof projector>, body: RecordsReplay, principal: Address = auditor) => {
    const reply = await world.replay(body, principal);
    if (!reply.ok) throw new Error(reply.error.code);
    return reply.value;
  };

  it('hands out every record after a place with its link, and says where to go on', async () => {
    const world = projector();
    fold(world.records, record('a'), record('theirs', 'w2'), record('b'), record('c'));
    const first = await page(world, { after: 0, limit: 2 });
    expect(first.records.map(({ event, count }) => [event.id, count])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    expect(first.after).toBe(3);
    const second = await page(world, { after: first.after, session: first.session });
    expect(second.records.map(({ chain }) => chain)).toEqual([world.records.tips()[0]?.chain]);
  });

  it('has the signed heads of what it hands out', async () => {
    const world = projector();
    fold(world.records, record('a'), record('b'));
    const sealed = sealKeys().seal({ version: '1', namespaceId: 'w1', count: 1, sequence: 1, chain: 'ab'.repeat(32), at: NOON });
    world.records.keepHead(sealed, 1);
    expect(await page(world, { after: 0, limit: 1 })).toMatchObject({ heads: [sealed], headsAfter: 1 });
    expect((await page(world, { after: 1, headsAfter: 1 })).heads).toEqual([]);
    // One that was signed after its record had been handed out is handed out still.
    world.records.keepHead(sealed, 9);
    expect(await page(world, { after: 2, headsAfter: 1 })).toMatchObject({ records: [], heads: [sealed], headsAfter: 9 });
  });

  it('waits for something new, and answers with nothing when its time is over', async () => {
    const world = projector();
    let waits = 0;
    world.folded = async () => {
      waits += 1;
      if (waits === 2) fold(world.records, record('new'));
      return true;
    };
    expect((await page(world, { after: 0, waitMs: 20_000 })).records).toHaveLength(1);
    expect(waits).toBe(2);
    expect(await page(world, { after: 7 })).toMatchObject({ records: [], after: 7 });
  });

  it('is decided once a session and not for each page, for its own records would wake it', async () => {
    const world = projector();
    const { session } = await page(world, { after: 0 });
    await page(world, { after: 0, session });
    expect(world.asked).toHaveLength(1);
    world.clock.advance(30_000);
    const again = await page(world, { after: 0, session });
    expect(world.asked).toHaveLength(2);
    expect(again.session).not.toBe(session);
  });

  it('takes no session of another reader, of another authority, or made up', async () => {
    const world = projector();
    const { session } = await page(world, { after: 0 });
    world.says = 'denied';
    expect(await world.replay({ after: 0, session }, carol)).toMatchObject({ ok: false, error: { code: 'no_matching_grant' } });
    expect(await world.replay({ after: 0, session, authority: carol })).toMatchObject({ ok: false, error: { code: 'no_matching_grant' } });
    expect(await world.replay({ after: 0, session: 'eyJ1bnRpbCI6MX0.AAAA' })).toMatchObject({
      ok: false,
      error: { code: 'no_matching_grant' },
    });
    expect(await world.replay({ after: 0, session })).toMatchObject({ ok: true });
  });

  it('is unavailable while the stream is silent', async () => {
    const world = projector();
    world.behind = 'the stream of records is silent';
    expect(await world.replay({ after: 0 })).toMatchObject({ ok: false, error: { code: 'records_unavailable', retryable: true } });
  });

  it('is unavailable while the read model is being built, and says how far it is: its end would be no end', async () => {
    const world = projector();
    fold(world.records, record('a'));
    world.head = () => Promise.resolve(ok(4));
    world.building = 'the read model is being built: 1 of 4 records, 25 %';
    expect(await world.replay({ after: 0 })).toMatchObject({
      ok: false,
      error: { code: 'records_unavailable', message: expect.stringContaining('1 of 4 records, 25 %'), retryable: true },
    });
    world.folded = async () => (fold(world.records, record('b'), record('c'), record('d')), true);
    expect((await page(world, { after: 0 })).records).toHaveLength(4);
  });
});
