import { describe, expect, it } from 'vitest';
import { PARKED_PER_SENDER_MAX } from './parked-messages.ts';
import { bob, clerk, delivery, routerWorld, statusOf } from './router.fixture.ts';

const HOUR_MS = 3_600_000;
const TTL_MS = 60_000;
const open = { act: 'open', ttlMs: TTL_MS } as const;

/** A recipient that leased a route and let it lapse: it will be back. */
const awayWorld = async () => {
  const world = routerWorld();
  await world.route(open);
  world.clock.advance(TTL_MS);
  return world;
};
type World = Awaited<ReturnType<typeof awayWorld>>;

const idsRead = async (world: World) => (await world.read()).map(({ message }) => message.id);
const spoken = async (world: World, id?: string) =>
  (await world.records(id))
    .flatMap((record) => ('audit' in record ? record.audit : []))
    .map(({ type, outcome, reason }) => [type, outcome, ...(reason === undefined ? [] : [reason])].join(' '));

describe('a message to a recipient that leases no route', () => {
  it('is in its inbox, whenever it looks', async () => {
    const world = routerWorld();
    await world.send();
    expect([await idsRead(world), await world.fate()]).toEqual([['m-1'], 'dispatched']);
  });
});

describe('a message to a recipient with a live route', () => {
  it('goes out at once, under its lease', async () => {
    const world = routerWorld();
    await world.route(open);
    expect(statusOf(await world.send())).toBe('accepted');
    expect((await world.records()).at(-1)).toMatchObject({ delivery: { type: 'MessageDispatched', lease: 1 } });
    expect(await idsRead(world)).toEqual(['m-1']);
  });
});

describe('a message to a recipient whose route has lapsed', () => {
  it('is accepted and parked: nobody is shown it, and its sender can ask', async () => {
    const world = await awayWorld();
    expect(await world.send()).toMatchObject({ ok: true, value: { status: 'accepted', metadata: { delivery: 'parked' } } });
    expect([await idsRead(world), await world.fate()]).toEqual([[], 'parked']);
    expect(await world.route({ act: 'show' })).toMatchObject({ ok: true, value: { live: false, parked: 1 } });
  });

  it('has its recipient looked after once more, for the route may have been opened meanwhile', async () => {
    const world = await awayWorld();
    await world.send();
    expect(world.woken.at(-1)).toBe('w1 agent');
  });

  it('goes out once a route is open, decided anew by the same use, and is delivered when it is acknowledged', async () => {
    const world = await awayWorld();
    await world.send();
    world.clock.advance(5 * HOUR_MS);
    await world.route(open);
    expect(await world.letGo()).toBe(true);
    expect([await world.fate(), new Set(world.operations).size, world.operations.length]).toEqual(['dispatched', 1, 2]);
    const [entry] = await world.read();
    expect(await world.acknowledge(entry?.sequence ?? 0)).toBe(true);
    expect([await world.fate(), await idsRead(world)]).toEqual(['delivered', []]);
    expect(await world.route({ act: 'show' })).toMatchObject({ ok: true, value: { parked: 0 } });
  });

  it('stays parked as long as the route is not open', async () => {
    const world = await awayWorld();
    await world.send();
    world.clock.advance(HOUR_MS);
    expect(await world.letGo()).toBe(false);
    expect([await world.fate(), world.operations.length]).toEqual(['parked', 1]);
  });

  it('stays parked while nobody can decide it', async () => {
    const world = await awayWorld();
    await world.send();
    await world.route(open);
    world.says = () => 'no answer';
    expect(await world.letGo()).toBe(false);
    world.says = () => ({ status: 'denied', code: 'usage_store_unavailable' });
    expect(await world.letGo()).toBe(false);
    expect(await world.fate()).toBe('parked');
    world.says = () => ({});
    await world.letGo();
    expect(await idsRead(world)).toEqual(['m-1']);
  });

  it('is not let go to a recipient that blocked its sender meanwhile', async () => {
    const world = await awayWorld();
    await world.send();
    world.rules = { blocked: [bob] };
    await world.route(open);
    await world.letGo();
    expect([await world.fate(), await idsRead(world)]).toEqual(['denied sender_blocked', []]);
  });

  it('has expired when nobody came for it in time, and is told so', async () => {
    const world = await awayWorld();
    await world.send({ expiresAt: new Date(world.clock.now() + HOUR_MS).toISOString() });
    world.clock.advance(HOUR_MS);
    expect(await world.letGo()).toBe(true);
    expect([await world.fate(), (await spoken(world)).at(-1)]).toEqual(['expired message_expired', 'message.sent failed message_expired']);
  });

  it('waits no longer than a week', async () => {
    const world = await awayWorld();
    await world.send();
    world.clock.advance(7 * 24 * HOUR_MS - 1);
    await world.letGo();
    expect(await world.fate()).toBe('parked');
    world.clock.advance(1);
    await world.letGo();
    expect(await world.fate()).toBe('expired message_expired');
  });

  it('has failed beyond what may wait of one sender, and leaves room for others', { timeout: 60_000 }, async () => {
    const world = await awayWorld();
    for (let count = 0; count < PARKED_PER_SENDER_MAX; count += 1) await world.send({ id: `m-${count}` });
    expect(statusOf(await world.send({ id: 'one-more' }))).toBe('failed sender_parking_full');
    const alice = { kind: 'human', userId: 'alice' } as const;
    expect(statusOf(await world.send({ id: 'hers' }, { ...delivery, principal: alice }))).toBe('accepted');
  });

  it('goes to the inbox when its recipient gives the route up', async () => {
    const world = await awayWorld();
    await world.send();
    await world.route({ act: 'forget' });
    await world.letGo();
    expect(await idsRead(world)).toEqual(['m-1']);
  });
});

describe('a message parked for hours, whose send grant was revoked meanwhile', () => {
  const parkedForHours = async () => {
    const world = await awayWorld();
    await world.send();
    world.clock.advance(5 * HOUR_MS);
    world.says = () => ({ status: 'denied', code: 'no_matching_grant' });
    return world;
  };

  it('is denied by that when the route is open again, and nobody is shown it', async () => {
    const world = await parkedForHours();
    await world.route(open);
    await world.letGo();
    expect([await world.fate(), await idsRead(world)]).toEqual(['denied no_matching_grant', []]);
    expect((await spoken(world)).slice(-2)).toEqual([
      'authorization.checked denied no_matching_grant',
      'message.sent denied no_matching_grant',
    ]);
  });

  it('is revoked with the route when that is closed, by the route’s own code, and nothing is decided', async () => {
    const world = await parkedForHours();
    await world.route({ act: 'close' });
    expect([await world.fate(), world.operations.length]).toEqual(['revoked route_closed', 1]);
    expect((await spoken(world)).at(-1)).toBe('message.sent denied route_closed');
    expect(await world.route({ act: 'show' })).toMatchObject({ ok: true, value: { parked: 0 } });
  });
});

describe('closing a route', () => {
  it('between two dispatches leaves what arrived before it delivered, and lets nothing more go', async () => {
    const world = await awayWorld();
    const ids = Array.from({ length: 20 }, (_, index) => `m-${index}`);
    for (const id of ids) await world.send({ id });
    await world.route(open);
    world.afterHandOver = async () => {
      const [entry] = await world.read();
      await world.acknowledge(entry?.sequence ?? 0);
      await world.route({ act: 'close' });
    };
    await world.letGo();
    const fates = await Promise.all(ids.map((id) => world.fate(id)));
    expect(fates.filter((fate) => fate === 'delivered')).toHaveLength(1);
    expect(fates.filter((fate) => fate === 'revoked route_closed')).toHaveLength(19);
    // A few had left already and did not arrive; the rest stayed where it was.
    expect(world.delivered.length).toBeLessThan(20);
    expect(await idsRead(world)).toEqual([]);
  });

  it('revokes what has left and not arrived', async () => {
    const world = routerWorld();
    await world.route(open);
    await world.send();
    await world.route({ act: 'close' });
    expect([await world.fate(), await idsRead(world)]).toEqual(['revoked route_closed', []]);
  });

  it('leaves what was acknowledged as it is', async () => {
    const world = routerWorld();
    await world.route(open);
    await world.send();
    const [entry] = await world.read();
    await world.acknowledge(entry?.sequence ?? 0);
    await world.route({ act: 'close' });
    expect(await world.fate()).toBe('delivered');
  });

  it('denies what is sent after it, and leaves the grant to send alone', async () => {
    const world = routerWorld();
    await world.route(open);
    await world.route({ act: 'close' });
    expect(statusOf(await world.send())).toBe('denied route_closed');
    expect(await spoken(world)).toEqual(['authorization.checked allowed', 'message.sent denied route_closed']);
    await world.route(open);
    expect(statusOf(await world.send({ id: 'm-2' }))).toBe('accepted');
  });

  it('revokes also what a router that stood still brings after it, whether or not another route was opened', async () => {
    const world = routerWorld();
    await world.route(open);
    world.beforeHandOver = async () => void (await world.route({ act: 'close' }));
    expect(statusOf(await world.send())).toBe('accepted');
    await world.route(open);
    expect([await idsRead(world), await world.fate()]).toEqual([[], 'revoked route_closed']);
  });

  it('keeps a queued turn from taking its message', async () => {
    const world = routerWorld();
    const terms = { agentId: 'clerk', authority: bob, owner: bob };
    world.registered = { agent: { terms, status: 'active', consents: [bob], version: 1, at: '2026-01-01T12:00:00.000Z' } };
    await world.route(open);
    await world.send();
    expect(world.delivered).toEqual(['sharedos.v1.w1.turn.recipient.agent.clerk']);
    await world.route({ act: 'close' });
    expect(await world.take(1)).toEqual({ ok: true, value: { taken: false, code: 'route_closed' } });
    expect(await world.fate()).toBe('revoked route_closed');
  });
});

describe('a turn that a message starts under a route', () => {
  it('takes it, and again when it is delivered to the executor again', async () => {
    const world = routerWorld();
    await world.route(open);
    await world.send();
    expect([await world.take(1), await world.take(1)]).toEqual([
      { ok: true, value: { taken: true } },
      { ok: true, value: { taken: true } },
    ]);
    expect(await world.fate()).toBe('delivered');
  });
});

describe('a lease', () => {
  it('is renewed by whoever holds it, and ends when another is opened', async () => {
    const world = routerWorld();
    await world.route(open);
    expect(await world.route({ act: 'renew', lease: 1, ttlMs: TTL_MS })).toMatchObject({ ok: true, value: { live: true } });
    await world.route(open);
    expect(await world.route({ act: 'renew', lease: 1, ttlMs: TTL_MS })).toMatchObject({ ok: false, error: { code: 'route_lease_ended' } });
  });
  it('leaves one record behind however often it is renewed', async () => {
    const world = routerWorld();
    await world.route(open);
    for (let count = 0; count < 5; count += 1) await world.route({ act: 'renew', lease: 1, ttlMs: TTL_MS });
    expect(world.messages.on('sharedos.v1.w1.route.>')).toHaveLength(1);
  });
});

describe('a router that died', () => {
  it('between the step on record and the inbox leaves a message that the next one brings', async () => {
    const world = await awayWorld();
    await world.send();
    await world.route(open);
    world.inbox = () => ({ ok: false, error: { kind: 'unavailable', reason: 'away' } });
    await world.letGo();
    expect([await world.fate(), await idsRead(world)]).toEqual(['dispatched', []]);
    world.inbox = () => ({ ok: true, value: { sequence: 1, duplicate: false } });
    expect(await world.letGo()).toBe(true);
    expect(await idsRead(world)).toEqual(['m-1']);
  });
  it('after it parked a message and before it said so leaves one that is accepted, and leaves when it can', async () => {
    const world = await awayWorld();
    world.afterParking = () => world.log.stall();
    expect(statusOf(await world.send())).toBe('ledger_unavailable');
    world.log.resume();
    await world.route(open);
    await world.letGo();
    expect(await world.fate()).toBe('accepted');
    world.clock.advance(TTL_MS);
    await world.route(open);
    await world.letGo();
    await world.letGo();
    expect([await idsRead(world), statusOf(await world.send())]).toEqual([['m-1'], 'accepted']);
  });
  it('after it had brought a message, which the next one parked, leaves one that is not lost', async () => {
    const world = routerWorld();
    await world.route(open);
    world.afterHandOver = async () => world.log.stall();
    expect(statusOf(await world.send())).toBe('ledger_unavailable');
    world.log.resume();
    world.clock.advance(TTL_MS);
    expect([statusOf(await world.send()), await world.fate()]).toEqual(['accepted', 'parked']);
    // What the first had brought does not count: on record the message waits.
    expect(await world.read()).toEqual([]);
    await world.route(open);
    expect(await world.letGo()).toBe(true);
    expect([await world.fate(), await idsRead(world)]).toEqual(['dispatched', ['m-1']]);
  });
  it('and comes back brings no second copy to whoever acknowledged the first', async () => {
    const world = routerWorld();
    await world.send();
    const [entry] = await world.read();
    await world.acknowledge(entry?.sequence ?? 0);
    await world.putAgain();
    expect(await world.read()).toEqual([]);
    expect(world.messages.on('sharedos.v1.w1.inbox.>')).toEqual([]);
  });
});

describe('two copies of a message in an inbox', () => {
  it('are shown as one', async () => {
    const world = routerWorld();
    await world.send();
    await world.putAgain();
    expect(await idsRead(world)).toEqual(['m-1']);
    expect(world.messages.on('sharedos.v1.w1.inbox.>')).toHaveLength(1);
  });
});

describe('what became of a message', () => {
  it('is told to its sender and to nobody else', async () => {
    const world = routerWorld();
    await world.send();
    expect([await world.fate(), await world.fate('another')]).toEqual(['dispatched', 'message_not_found']);
    expect(await world.fateFor(clerk)).toBe('message_not_found');
  });
});
