import type { AgentStep, OutgoingMessage, RunningAgent, SharedOS } from '@sharedos/client';
import type { Address, DeliveryStatus } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, BOB, NAMESPACE, PRINCIPALS, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const CLERK = { kind: 'agent', agentId: 'clerk' } as const satisfies Address;
const LEASE_MS = 600_000;

let system: TestSystem;
let alice: SharedOS;
const agents: RunningAgent[] = [];

beforeAll(async () => {
  system = await startTestSystem({
    principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CLERK }],
    roots: { [NAMESPACE]: [ALICE, BOB] },
    replicas: { 'messaging-router': 2 },
  });
  alice = await system.client(ALICE);
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  for (const [id, path] of [
    ['to-bob', ['human', 'bob']],
    ['to-scout', ['agent', 'scout']],
    ['to-clerk', ['agent', 'clerk']],
  ] as const)
    await system.grant(id, { namespace: 'sharedos.messaging', path, actions: ['send'], scope: 'exact' }, { to: ALICE });
}, DEADLINE_MS);
afterAll(async () => {
  for (const agent of agents) await agent.stop();
  await system?.stop();
});

const message = (id: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  traceId: `trace-${id}`,
  receiver: BOB,
  purpose: 'testing',
  payload: { text: id },
  ...more,
});
const sent = async (outgoing: OutgoingMessage) => {
  const answer = await alice.messages.send(outgoing);
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return answer.value;
};
const fateOf = async (id: string): Promise<string> => {
  const status = await alice.messages.status(id);
  return status.ok ? [status.value.state, status.value.code].filter(Boolean).join(' ') : status.error.kind;
};
const becomes = (id: string, state: DeliveryStatus['state']) =>
  waitFor(`${id} to be ${state}`, async () => (await fateOf(id)).startsWith(state), DEADLINE_MS);
const inboxOf = async (client: SharedOS) => {
  const read = await client.messages.inbox();
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return read.value;
};

describe('a recipient that leases a route', () => {
  it('is sent what waited for it when it opens one again', { timeout: DEADLINE_MS }, async () => {
    const bob = await system.client(BOB);
    const held = await bob.messages.route.hold({ ttlMs: LEASE_MS });
    if (!held.ok) throw new Error(JSON.stringify(held.error));
    expect(await sent(message('present'))).toMatchObject({ status: 'accepted' });
    expect(await fateOf('present')).toBe('dispatched');

    expect(await held.value.pause()).toBe(true);
    expect(await sent(message('away'))).toMatchObject({ status: 'accepted', metadata: { delivery: 'parked' } });
    expect([await fateOf('away'), (await inboxOf(bob)).map((entry) => entry.message.id)]).toEqual(['parked', ['present']]);
    expect(await bob.messages.route.show()).toMatchObject({ ok: true, value: { live: false, parked: 1 } });

    expect(await bob.messages.route.open(LEASE_MS)).toMatchObject({ ok: true, value: { live: true } });
    await becomes('away', 'dispatched');
    const [, entry] = await waitFor('both', async () => (await inboxOf(bob)).length === 2 && inboxOf(bob), DEADLINE_MS);
    expect(await bob.messages.ack(entry?.sequence ?? 0)).toEqual({ ok: true, value: true });
    expect(await fateOf('away')).toBe('delivered');
  });

  it('is taken for gone when the lease is over, without anybody ending it', { timeout: DEADLINE_MS }, async () => {
    const scout = await system.client(SCOUT);
    const opened = await scout.messages.route.open(1_000);
    if (!opened.ok) throw new Error(JSON.stringify(opened.error));
    const lapsed = async (): Promise<boolean> => {
      const shown = await scout.messages.route.show();
      return shown.ok && !shown.value.live;
    };
    await waitFor('the lease to lapse', lapsed, DEADLINE_MS);
    await sent(message('too-late', { receiver: SCOUT }));
    expect(await fateOf('too-late')).toBe('parked');
    expect(await scout.messages.route.renew(opened.value.route.lease)).toMatchObject({
      ok: false,
      error: { error: { code: 'route_lease_ended' } },
    });
    await scout.messages.route.forget();
    await becomes('too-late', 'dispatched');
  });

  it('is not sent what its sender may not send any more, and that is on record', { timeout: DEADLINE_MS }, async () => {
    await system.grant(
      'brief',
      { namespace: 'sharedos.messaging', path: ['human', 'auditor'], actions: ['send'], scope: 'exact' },
      { to: ALICE },
    );
    const auditor = await system.client(AUDITOR);
    const opened = await auditor.messages.route.open(LEASE_MS);
    if (!opened.ok) throw new Error(JSON.stringify(opened.error));
    await auditor.messages.route.pause(opened.value.route.lease);
    await sent(message('ungranted-by-then', { receiver: AUDITOR }));
    expect(await alice.grants.revoke('brief')).toMatchObject({ ok: true });
    await auditor.messages.route.open(LEASE_MS);
    await becomes('ungranted-by-then', 'denied');
    expect([await fateOf('ungranted-by-then'), await inboxOf(auditor)]).toEqual(['denied no_matching_grant', []]);
    const records = await system.records(
      'trace-ungranted-by-then',
      (found) => found.filter(({ type }) => type === 'message.sent').length === 2,
    );
    expect(records.filter(({ type }) => type !== 'authority.resolved').map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual(
      [
        ['authorization.checked', 'allowed', undefined],
        ['message.sent', 'succeeded', undefined],
        ['authorization.checked', 'denied', 'no_matching_grant'],
        ['message.sent', 'denied', 'no_matching_grant'],
      ],
    );
    expect(JSON.stringify(records)).not.toContain('"text"');
  });

  it('has revoked, by closing it, what waited and what it had not acknowledged', { timeout: DEADLINE_MS }, async () => {
    const bob = await system.client(BOB);
    const opened = await bob.messages.route.open(LEASE_MS);
    if (!opened.ok) throw new Error(JSON.stringify(opened.error));
    await sent(message('in-flight'));
    await bob.messages.route.pause(opened.value.route.lease);
    await sent(message('waiting'));
    expect(await bob.messages.route.close()).toMatchObject({ ok: true, value: { route: { status: 'closed' }, parked: 0 } });
    expect([await fateOf('in-flight'), await fateOf('waiting'), await inboxOf(bob)]).toEqual([
      'revoked route_closed',
      'revoked route_closed',
      [],
    ]);
    expect(await sent(message('after-closing'))).toMatchObject({ status: 'denied', error: { code: 'route_closed' } });
    await bob.messages.route.open(LEASE_MS);
    expect([await inboxOf(bob), await fateOf('waiting')]).toEqual([[], 'revoked route_closed']);
  });
});

describe('a registered agent that leases a route', () => {
  const waits = ({ complete }: AgentStep) => complete({ done: true });

  it('has its turn started once it is there again', { timeout: DEADLINE_MS }, async () => {
    const runs = { namespace: 'sharedos.execution', path: ['agent', 'clerk'], actions: ['invoke'], scope: 'exact' } as const;
    await system.grant('clerk-runs', runs, { from: BOB, to: CLERK });
    const toAlice = { namespace: 'sharedos.messaging', path: ['human', 'alice'], actions: ['send'], scope: 'exact' } as const;
    await system.grant('clerk-to-alice', toAlice, { from: BOB, to: CLERK });
    const terms = { agentId: CLERK.agentId, authority: BOB, owner: BOB, runtime: { runtime: 'remote', config: {} } };
    expect(await (await system.client(BOB)).agents.register(terms)).toMatchObject({ ok: true });
    const clerk = await system.client(CLERK);
    const opened = await clerk.messages.route.open(LEASE_MS);
    if (!opened.ok) throw new Error(JSON.stringify(opened.error));
    await clerk.messages.route.pause(opened.value.route.lease);
    await sent(message('for-clerk', { receiver: CLERK }));
    expect(await fateOf('for-clerk')).toBe('parked');

    const running = await clerk.agent(waits);
    if (!running.ok) throw new Error('clerk does not run');
    agents.push(running.value);
    await clerk.messages.route.open(LEASE_MS);
    await becomes('for-clerk', 'delivered');
    await waitFor(
      'its answer',
      async () =>
        (await inboxOf(alice)).some(
          (entry) => entry.message.replyTo === 'for-clerk' && JSON.stringify(entry.message.payload).includes('done'),
        ),
      DEADLINE_MS,
    );
  });
});
