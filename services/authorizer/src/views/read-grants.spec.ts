import { memoryEventStore } from '@sharedos/event-store';
import type { Revision } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { alice, authorizerWorld, bob, carol, reading } from '../authorizer.fixture.ts';
import { issueGrant } from '../changes/issue-grant.ts';
import { getGrant, listGrants } from './read-grants.ts';

const idsOf = (reply: Awaited<ReturnType<ReturnType<typeof listGrants>>>) =>
  reply.ok ? [reply.value.grants.map(({ id }) => id), reply.value.next] : reply.error.code;

describe('reading a grant', () => {
  it('shows it to its issuer and its holder, and to nobody else', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const get = getGrant(world.ports);
    expect(await get({ grantId: 'g' }, world.delivery('grant.get', alice))).toMatchObject({
      ok: true,
      value: { grant: { id: 'g' }, revision: 'log@1' },
    });
    expect(await get({ grantId: 'g' }, world.delivery('grant.get', bob))).toMatchObject({ ok: true });
    const stranger = await get({ grantId: 'g' }, world.delivery('grant.get', carol));
    expect(stranger).toMatchObject({ ok: false, error: { code: 'grant_not_found' } });
    expect(await get({ grantId: 'none' }, world.delivery('grant.get', carol))).toEqual(stranger);
  });

  it('shows one’s own writes, on whichever replica they were made', async () => {
    const store = memoryEventStore({ storeId: 'log' });
    const [one, other] = [await authorizerWorld({ store }), await authorizerWorld({ store })];
    await one.issue('g');
    expect(await getGrant(other.ports)({ grantId: 'g' }, other.delivery('grant.get', alice))).toMatchObject({ ok: true });
    await other.revoke('g');
    expect(await getGrant(one.ports)({ grantId: 'g' }, one.delivery('grant.get', alice))).toMatchObject({
      ok: true,
      value: { grant: { revokedAt: expect.any(String) } },
    });
  });

  it('is log_unavailable rather than stale', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const behind = {
      ...world.ports,
      limits: { ...world.ports.limits, deadlineMs: 10 },
      store: { ...world.store, barrier: async () => ({ ok: true, value: 9 }) as const },
    };
    expect(await getGrant(behind)({ grantId: 'g' }, world.delivery('grant.get', alice))).toMatchObject({
      ok: false,
      error: { code: 'log_unavailable', retryable: true },
    });
    world.store.stop();
    expect(await listGrants(world.ports)({ role: 'issuer' }, world.delivery('grant.list', alice))).toMatchObject({
      ok: false,
      error: { code: 'log_unavailable' },
    });
  });
});

describe('listing grants', () => {
  it('goes by id and says where the next page begins', async () => {
    const world = await authorizerWorld();
    for (const id of ['c', 'a', 'b']) await world.issue(id);
    await world.issue('of-carol', {}, { by: carol, to: carol });
    const list = (role: 'issuer' | 'subject', by: typeof alice | typeof bob, more: { limit?: number; after?: string } = {}) =>
      listGrants(world.ports)({ role, ...more }, world.delivery('grant.list', by));
    expect(idsOf(await list('issuer', alice, { limit: 2 }))).toEqual([['a', 'b'], 'b']);
    expect(idsOf(await list('issuer', alice, { limit: 2, after: 'b' }))).toEqual([['c'], undefined]);
    expect(idsOf(await list('subject', bob))).toEqual([['a', 'b', 'c'], undefined]);
    expect(idsOf(await list('subject', alice))).toEqual([[], undefined]);
  });

  it('ends a page early when it would not fit one message', async () => {
    const world = await authorizerWorld();
    const metadata = { text: 'x'.repeat(400_000) };
    for (let number = 10; number < 22; number += 1) {
      const body = { commandId: `c-${number}`, grant: { id: `g-${number}`, subject: bob, capabilities: [reading('Work')], metadata } };
      expect(await issueGrant(world.ports)(body, world.delivery('grant.issue', alice))).toMatchObject({ ok: true });
    }
    const seen: string[] = [];
    for (let after: string | undefined = ''; after !== undefined;) {
      const reply = await listGrants(world.ports)(
        { role: 'subject', ...(after === '' ? {} : { after }) },
        world.delivery('grant.list', bob),
      );
      if (!reply.ok) throw new Error(reply.error.code);
      expect(Buffer.byteLength(JSON.stringify(reply.value))).toBeLessThan(5 * 1024 * 1024);
      seen.push(...reply.value.grants.map(({ id }) => id));
      after = reply.value.next;
    }
    expect(seen).toEqual(Array.from({ length: 12 }, (_, index) => `g-${index + 10}`));
  });

  it('shows of them those that are live, that ended, or that one principal holds', async () => {
    const world = await authorizerWorld();
    await world.issue('live');
    await world.issue('of-carol', {}, { to: carol });
    await world.issue('revoked');
    await world.issue('expired', { expiresAt: '2026-01-01T12:00:01Z' });
    await world.revoke('revoked');
    world.clock.advance(5_000);
    const list = listGrants(world.ports);
    const ids = async (filter: { state?: 'live' | 'ended'; subject?: typeof bob | typeof carol; issuer?: typeof alice | typeof carol }) =>
      idsOf(await list({ role: 'issuer', ...filter }, world.delivery('grant.list', alice)))[0];
    expect(await ids({ state: 'live' })).toEqual(['live', 'of-carol']);
    expect(await ids({ state: 'ended' })).toEqual(['expired', 'revoked']);
    expect(await ids({ subject: carol })).toEqual(['of-carol']);
    expect(await ids({ state: 'live', subject: bob, issuer: alice })).toEqual(['live']);
    expect(await ids({ issuer: carol })).toEqual([]);
  });

  it('waits for a revision that the request names, and asks the log nothing', async () => {
    const world = await authorizerWorld({ deadlineMs: 5_000 });
    const list = listGrants({ ...world.ports, store: { ...world.store, barrier: () => Promise.reject(new Error('the log was asked')) } });
    const listing = list({ role: 'issuer', revision: 'log@1' as Revision }, world.delivery('grant.list', alice));
    await world.issue('g');
    expect(idsOf(await listing)).toEqual([['g'], undefined]);
  });
});
