import { wireMessage, replyMessage } from '@sharedos/contracts';
import { freePort } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type BusStatus, connectBus } from './connect.ts';
import { type TestServer, busOptions, testServer, until } from './broker.fixture.ts';

const Ask = wireMessage('ask/1', z.strictObject({}));
const Answer = replyMessage('answer/1', z.strictObject({}));

describe('connecting to the broker', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await testServer({ publish: ['allowed'], subscribe: ['_INBOX.narrow.>'] });
  });
  afterAll(() => server.end());

  it('gives up at its deadline and says what to do', async () => {
    const nowhere = `nats://127.0.0.1:${await freePort()}`;
    await expect(connectBus({ ...busOptions(nowhere), connectTimeoutMs: 200 })).rejects.toThrow(
      /no NATS server answers at .*: start one, or correct the address/,
    );
  });

  it('says at once that it was given no address', async () => {
    await expect(connectBus(busOptions(''))).rejects.toThrow(/no address of a NATS server is given/);
  });

  it('does not wait out its deadline when the broker refuses the user', async () => {
    await expect(connectBus({ ...busOptions(server.url), pass: 'wrong', connectTimeoutMs: 60_000 })).rejects.toThrow(
      /refused user "service": check its password/,
    );
  });

  it('refuses an inbox that the broker forbids, rather than wait for answers that never come', async () => {
    await expect(server.connect({ user: 'narrow', inboxPrefix: '_INBOX.other' })).rejects.toThrow(
      /does not let user "narrow" subscribe to "_INBOX\.other\.>"/,
    );
  });

  it('makes a forbidden request unavailable at once and reports it', async () => {
    const seen: BusStatus[] = [];
    const bus = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow', onStatus: (status) => seen.push(status) });
    const began = Date.now();
    const outcome = await bus.request('forbidden', Ask, {}, Answer, { timeoutMs: 10_000 });
    expect(outcome).toEqual({ ok: false, error: { kind: 'unavailable', reason: 'no permission to publish on forbidden' } });
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(seen).toContainEqual({ kind: 'not_permitted', operation: 'publish', natsSubject: 'forbidden' });
  });

  it('makes a forbidden subscription unavailable', async () => {
    const bus = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow' });
    expect(await bus.subscribe('forbidden', () => {})).toEqual({
      ok: false,
      error: { kind: 'unavailable', reason: 'no permission to subscribe to forbidden' },
    });
  });

  it('ends what waits when the connection is lost, answers unavailable meanwhile, and comes back by itself', async () => {
    const seen: string[] = [];
    const bus = await server.connect({ onStatus: (status) => seen.push(status.kind) });
    const heard: string[] = [];
    await bus.subscribe('allowed', (message) => heard.push(message.header('sharedos-schema') ?? ''));
    server.admin.subscribe('deaf', { callback: () => {} });
    await server.admin.flush();
    const waiting = bus.request('deaf', Ask, {}, Answer, { timeoutMs: 60_000 });
    await server.stop();
    expect(await waiting).toEqual({ ok: false, error: { kind: 'unavailable', reason: 'the connection to NATS was lost' } });
    expect(bus.connected).toBe(false);
    expect(await bus.request('deaf', Ask, {}, Answer, { timeoutMs: 60_000 })).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    bus.publish('allowed', Ask, {});
    await server.start();
    await until('connected again', () => bus.connected);
    bus.publish('allowed', Answer, { ok: false, error: { code: 'a', message: 'b' } });
    await until('heard', () => heard.length > 0);
    // What was published without a connection is not sent behind its sender's back by the next one.
    expect(heard).toEqual([Answer.name]);
    expect(seen).toEqual(['disconnected', 'connected']);
    await bus.drain();
    expect(bus.connected).toBe(false);
  });
});
