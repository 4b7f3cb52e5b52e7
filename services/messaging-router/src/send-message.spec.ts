import type { Delivery } from '@sharedos/bus';
import { MESSAGE_PAYLOAD_BYTES_MAX, ok, unavailable } from '@sharedos/contracts';
import { operationKeyHash } from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { NOON, bob, clerk, delivery, routerWorld, statusOf } from './router.fixture.ts';

describe('sending a message', () => {
  it('is decided for its one recipient, delivered once, and on record before and after', async () => {
    const world = routerWorld();
    expect(await world.send()).toEqual({ ok: true, value: { status: 'accepted', messageId: 'm-1', timestamp: NOON } });
    expect(world.delivered).toEqual(['sharedos.v1.w1.inbox.agent.clerk']);
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'admitted', 'ended']);
    expect(await world.audit()).toEqual([
      ['authorization.checked', 'allowed'],
      ['message.sent', 'succeeded'],
    ]);
    const audit = (await world.records()).flatMap((record) => ('audit' in record ? record.audit : []));
    expect(audit[0]).toMatchObject({
      resource: { namespace: 'sharedos.messaging', path: ['agent', 'clerk'], owner: bob },
      action: 'send',
      operationId: 'm-1',
    });
    expect(audit[1]).toMatchObject({ messageId: 'm-1', receiver: clerk, grantId: 'g', actor: bob, metadata: { source: 'kernel' } });
    expect(JSON.stringify(audit)).not.toContain('secret');
    expect(world.operations).toEqual([operationKeyHash('w1', 'message', bob, 'm-1')]);
  });

  it('is refused by the code of its decision, and delivers nothing', async () => {
    const world = routerWorld();
    world.says = () => ({ status: 'denied', code: 'no_matching_grant' });
    expect(statusOf(await world.send())).toBe('denied no_matching_grant');
    expect(world.delivered).toEqual([]);
    expect(await world.audit()).toEqual([
      ['authorization.checked', 'denied', 'no_matching_grant'],
      ['message.sent', 'denied', 'no_matching_grant'],
    ]);
  });

  it('is refused when nobody can say whether it is allowed', async () => {
    const world = routerWorld();
    world.says = () => 'no answer';
    expect(statusOf(await world.send())).toBe('denied authority_unavailable');
    expect([world.delivered, (await world.audit()).at(-1)]).toEqual([[], ['message.sent', 'denied', 'authority_unavailable']]);
  });

  it('is refused under the name of another sender, which is recorded', async () => {
    const world = routerWorld();
    expect(statusOf(await world.send({ sender: clerk }))).toBe('identity_mismatch');
    expect(world.told).toMatchObject([
      { type: 'message.sent', outcome: 'denied', reason: 'identity_mismatch', actor: bob, messageId: 'm-1' },
    ]);
    expect(await world.records()).toEqual([]);
    expect(statusOf(await world.send({ sender: bob }))).toBe('accepted');
  });

  it('is refused to a receiver that no grant can name', async () => {
    expect(statusOf(await routerWorld().send({ receiver: { kind: 'agent', agentId: 'a/b' } }))).toBe('invalid_request');
    expect(statusOf(await routerWorld().send({ receiver: { kind: 'agent', agentId: '..' } }))).toBe('invalid_request');
  });

  it.each([
    ['full', { kind: 'full' }, 'failed inbox_full'],
    ['not taking what is so large', { kind: 'too_large' }, 'failed message_delivery_failed'],
  ] as const)('has failed when the inbox is %s', async (_, error, status) => {
    const world = routerWorld();
    world.inbox = () => ({ ok: false, error });
    expect(statusOf(await world.send())).toBe(status);
    expect((await world.audit()).at(-1)).toEqual(['message.sent', 'failed', status.slice('failed '.length)]);
  });

  it('is accepted when the inbox did not answer and has it all the same', async () => {
    const world = routerWorld();
    world.inbox = () => unavailable('the acknowledgement was lost');
    world.holds = true;
    expect(statusOf(await world.send())).toBe('accepted');
    expect((await world.audit()).at(-1)).toEqual(['message.sent', 'succeeded']);
  });

  it('is of unknown fate when the inbox does not answer, and brought again once its router must be gone', async () => {
    const world = routerWorld();
    world.inbox = () => unavailable('away');
    expect(await world.send()).toMatchObject({ ok: false, error: { code: 'delivery_unknown', retryable: true } });
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'admitted']);
    expect(statusOf(await world.send())).toBe('failed replay_pending');
    world.inbox = () => ok({ stream: 'MESSAGES', sequence: 1, duplicate: false });
    world.clock.advance(60_000);
    expect(statusOf(await world.send())).toBe('accepted');
    expect((await world.read()).map(({ message }) => message.id)).toEqual(['m-1']);
  });

  it('is not delivered when it cannot be recorded before', async () => {
    const world = routerWorld();
    world.log.stall();
    expect(await world.send()).toMatchObject({ ok: false, error: { code: 'ledger_unavailable', retryable: true } });
    world.log.resume();
    world.says = () => (world.log.stall(), {});
    expect(await world.send({ id: 'm-1' })).toMatchObject({ ok: false, error: { code: 'ledger_unavailable' } });
    expect(world.delivered).toEqual([]);
  });
});

describe('a send on a bounded grant', () => {
  const use = { grantId: 'g', ordinal: 1, epoch: 'e-1' };

  it('spends the use that it was handed', async () => {
    const world = routerWorld();
    world.says = () => ({ use });
    expect(statusOf(await world.send())).toBe('accepted');
    expect(await world.ledger.uses()).toMatchObject({
      ok: true,
      value: [{ namespaceId: 'w1', use: { ordinal: 1, operation: world.operations[0] } }],
    });
  });

  it('is refused on a use that was spent before, and the counters are distrusted', async () => {
    const world = routerWorld();
    await world.ledger.claimUse('w1', { at: NOON, grantId: 'g', ordinal: 1, operation: 'another' });
    world.says = () => ({ use });
    expect(statusOf(await world.send())).toBe('denied usage_store_unavailable');
    expect([world.delivered, world.distrusted]).toEqual([[], [['sharedos.v1.w1.usage.distrust', { epoch: 'e-1' }]]]);
    expect(await world.audit()).toEqual([
      ['authorization.checked', 'denied', 'usage_store_unavailable'],
      ['message.sent', 'denied', 'usage_store_unavailable'],
    ]);
  });
});

describe('the same message sent again', () => {
  it('gets the same receipt and is delivered once', async () => {
    const world = routerWorld();
    const first = await world.send();
    world.clock.advance(5_000);
    expect(await world.send()).toEqual(first);
    expect([world.delivered.length, world.operations.length]).toEqual([1, 1]);
  });

  it('gets a refusal again as well: what was denied stays denied under its id', async () => {
    const world = routerWorld();
    world.says = () => ({ status: 'denied', code: 'no_matching_grant' });
    const first = await world.send();
    world.says = () => ({});
    expect(await world.send()).toEqual(first);
  });

  it.each([
    ['another payload', { payload: { text: 'else' } }],
    ['another recipient', { receiver: bob }],
    ['another purpose', { purpose: 'p2' }],
    ['another authority', { authority: clerk }],
  ])('is replay_conflict with %s, on record, and nothing more is delivered', async (_, more) => {
    const world = routerWorld();
    await world.send();
    expect(statusOf(await world.send(more))).toBe('denied replay_conflict');
    expect(world.delivered).toHaveLength(1);
    expect(world.told).toMatchObject([{ type: 'message.sent', outcome: 'denied', reason: 'replay_conflict' }]);
  });

  it('is another message from another sender', async () => {
    const world = routerWorld();
    await world.send();
    expect(statusOf(await world.send({}, { ...delivery, principal: clerk }))).toBe('accepted');
    expect(world.delivered).toHaveLength(2);
  });

  it('waits while it is under way, and is taken up by nobody before its router must be gone', async () => {
    const world = routerWorld();
    world.says = () => (world.log.stall(), {});
    await world.send();
    world.log.resume();
    world.says = () => ({});
    world.clock.advance(59_999);
    expect(await world.send()).toMatchObject({ ok: true, value: { status: 'failed', error: { code: 'replay_pending', retryable: true } } });
    expect(world.told).toMatchObject([{ type: 'message.sent', outcome: 'failed', reason: 'replay_pending' }]);
    world.clock.advance(1);
    expect(statusOf(await world.send())).toBe('accepted');
    expect(world.delivered).toHaveLength(1);
    expect(new Set(world.operations).size).toBe(1);
  });

  it('whose receipt was never recorded is decided anew by the same use, and handed over once', async () => {
    const world = routerWorld();
    world.inbox = () => (world.log.stall(), ok({ stream: 'MESSAGES', sequence: 1, duplicate: false }));
    expect(await world.send()).toMatchObject({ ok: false, error: { code: 'ledger_unavailable' } });
    world.log.resume();
    world.inbox = () => ok({ stream: 'MESSAGES', sequence: 1, duplicate: false });
    world.clock.advance(60_000);
    expect(statusOf(await world.send())).toBe('accepted');
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'admitted', 'admitted', 'ended']);
    expect([new Set(world.operations).size, (await world.read()).length]).toEqual([1, 1]);
  });
  it('whose recipient acknowledged it before its router died is accepted, and not brought again', async () => {
    const world = routerWorld();
    world.inbox = () => (world.log.stall(), ok({ stream: 'MESSAGES', sequence: 1, duplicate: false }));
    await world.send();
    world.log.resume();
    const [entry] = await world.read();
    expect(await world.acknowledge(entry?.sequence ?? 0)).toBe(true);
    world.clock.advance(60_000);
    expect(statusOf(await world.send())).toBe('accepted');
    expect([world.delivered.length, await world.read(), await world.fate()]).toEqual([1, [], 'delivered']);
  });
});

describe('a message to a registered agent', () => {
  const terms = { agentId: 'clerk', authority: bob, owner: bob };
  const registered = (status: 'active' | 'proposed' | 'withdrawn') => ({
    agent: { terms, status, consents: [bob], version: 1, at: NOON },
  });

  it('starts a turn of it, and takes no place in its inbox', async () => {
    const world = routerWorld();
    world.registered = registered('active');
    expect(statusOf(await world.send())).toBe('accepted');
    expect(world.delivered).toEqual(['sharedos.v1.w1.turn.recipient.agent.clerk']);
  });
  it.each(['proposed', 'withdrawn'] as const)('waits in its inbox while the registration is only %s', async (status) => {
    const world = routerWorld();
    world.registered = registered(status);
    expect(statusOf(await world.send())).toBe('accepted');
    expect(world.delivered).toEqual(['sharedos.v1.w1.inbox.agent.clerk']);
  });
  it('has failed when too many turns of it wait', async () => {
    const world = routerWorld();
    world.registered = registered('active');
    world.inbox = () => ({ ok: false, error: { kind: 'full' } });
    expect(statusOf(await world.send())).toBe('failed recipient_busy');
  });
});

describe('what a recipient says of whom it hears', () => {
  it('keeps out a sender that it blocked, after the decision and on record', async () => {
    const world = routerWorld();
    world.rules = { blocked: [bob] };
    expect(statusOf(await world.send())).toBe('denied sender_blocked');
    expect([world.delivered, (await world.audit()).at(-1)]).toEqual([[], ['message.sent', 'denied', 'sender_blocked']]);
  });
  it.each([
    ['everybody together', { perMinuteMax: 2 }],
    ['one sender', { perSenderPerMinuteMax: 2 }],
  ])('lets through no more a minute than it takes of %s', async (_, limit) => {
    const world = routerWorld();
    world.rules = { blocked: [], ...limit };
    const statuses = [];
    for (const id of ['m-1', 'm-2', 'm-3']) statuses.push(statusOf(await world.send({ id })));
    expect(statuses).toEqual(['accepted', 'accepted', 'denied recipient_rate_limited']);
    world.clock.advance(120_000);
    expect(statusOf(await world.send({ id: 'm-4' }))).toBe('accepted');
  });
});

describe('a reply', () => {
  const reply = { id: 'r-1', receiver: bob, replyTo: 'm-1' };
  const fromClerk: Delivery = { ...delivery, principal: clerk };

  it('is delivered to whoever asked, for what was asked', async () => {
    const world = routerWorld();
    await world.send();
    expect(statusOf(await world.send(reply, fromClerk))).toBe('accepted');
    expect(world.delivered.at(-1)).toBe('sharedos.v1.w1.inbox.agent.bob');
  });
  it.each([
    ['to another’s request', { ...reply, receiver: clerk }, fromClerk],
    ['to no request', { ...reply, replyTo: 'm-9' }, fromClerk],
    ['from a stranger', reply, { ...delivery, principal: { kind: 'agent', agentId: 'eve' } as const }],
    ['for another purpose', { ...reply, purpose: 'p2' }, fromClerk],
    ['in another trace', { ...reply, traceId: 'trace-2' }, fromClerk],
  ])('is refused %s, before anything is decided, and on record', async (_, more, from) => {
    const world = routerWorld();
    await world.send();
    expect(statusOf(await world.send(more, from))).toBe('denied invalid_message_reply');
    expect([world.delivered.length, world.operations.length]).toEqual([1, 1]);
  });
  it('starts no turn of a registered agent: two agents would answer each other for ever', async () => {
    const world = routerWorld();
    await world.send();
    world.registered = {
      agent: { terms: { agentId: 'bob', authority: bob, owner: bob }, status: 'active', consents: [bob], version: 1, at: NOON },
    };
    expect(statusOf(await world.send(reply, fromClerk))).toBe('accepted');
    expect(world.delivered.at(-1)).toBe('sharedos.v1.w1.inbox.agent.bob');
  });
});

describe('a payload', () => {
  it('is refused when it is too large to be sent in line', async () => {
    const world = routerWorld();
    expect(statusOf(await world.send({ payload: 'x'.repeat(MESSAGE_PAYLOAD_BYTES_MAX) }))).toBe('denied message_too_large');
    expect(world.delivered).toEqual([]);
  });
});
