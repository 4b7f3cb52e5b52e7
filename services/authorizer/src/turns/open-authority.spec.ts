import { type OpenedAuthority, instantOf } from '@sharedos/contracts';
import { GRANTS_MAX } from '@sharedos/kernel';
import { manualClock } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { NOON, alice, authorizerWorld, carol, contextAt, grantOf, issued, settled, toRead } from '../authorizer.fixture.ts';

const noon = instantOf(NOON) ?? NaN;
const grantIdsOf = (opened: OpenedAuthority) => (opened.status === 'resolved' ? opened.snapshot.grantIds : opened.code);

describe('opening the authority of a turn', () => {
  it('sees all that was acknowledged before, and records the load before it answers', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const opened = await world.opened({ turnId: 'turn-1' });
    expect(opened).toMatchObject({
      status: 'resolved',
      revision: 'log@1',
      admittedAt: NOON,
      snapshot: { grantIds: ['g'], grantCount: 1, loadedAt: NOON },
    });
    expect(world.records.at(-1)).toMatchObject({
      type: 'authority.resolved',
      outcome: 'succeeded',
      at: NOON,
      authorityHash: opened.status === 'resolved' ? opened.snapshot.hash : '',
      metadata: { grantIds: ['g'], grantCount: 1, hostCeiling: 'absent', hostPolicy: 'absent', revision: 'log@1', turnId: 'turn-1' },
    });
  });

  it('promises answers for the longest the turn may last and its grace, and no longer', async () => {
    const world = await authorizerWorld();
    const opened = await world.opened({ validForMs: 60_000 });
    expect(opened.validUntil).toBe('2026-01-01T12:01:30.000Z');
    expect(world.ports.tokens.verify(opened.token, contextAt(NOON), noon + 89_999)).toMatchObject({ ok: true });
    expect(world.ports.tokens.verify(opened.token, contextAt(NOON), noon + 90_000)).toEqual({ ok: false, error: 'expired' });
  });

  it('is unavailable while the log does not say how far it reaches', async () => {
    const world = await authorizerWorld();
    const opening = world.open();
    world.store.stop();
    expect(await opening).toMatchObject({ ok: true });
    await settled();
    expect(await world.open()).toMatchObject({ ok: false, error: { code: 'authority_unavailable', retryable: true } });
    expect(world.records.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  });

  it('is unavailable when the barrier fails, although the feed is alive', async () => {
    const world = await authorizerWorld();
    const silent = await authorizerWorld({
      store: { ...world.store, barrier: async () => ({ ok: false, error: { kind: 'unavailable', reason: 'no quorum' } }) },
    });
    expect(silent.fold.trouble).toBeUndefined();
    expect(await silent.open()).toMatchObject({ ok: false, error: { code: 'authority_unavailable', retryable: true } });
  });

  it('is unavailable when this replica is still behind at its deadline', async () => {
    const world = await authorizerWorld();
    const behind = await authorizerWorld({ deadlineMs: 10, store: { ...world.store, barrier: async () => ({ ok: true, value: 5 }) } });
    expect(await behind.open()).toMatchObject({ ok: false, error: { code: 'authority_unavailable', retryable: true } });
  });

  it('is unavailable, and not resolved, when the load cannot be recorded', async () => {
    const world = await authorizerWorld();
    world.auditWorks = false;
    expect(await world.open()).toMatchObject({ ok: false, error: { code: 'audit_unavailable', retryable: true } });
  });

  it('says why a set of grants cannot be trusted, and holds that for the whole turn', async () => {
    const world = await authorizerWorld();
    for (let number = 0; number <= GRANTS_MAX; number += 1) world.fold.index.apply('w1', issued(grantOf(`g-${number}`)), noon, 0);
    const opened = await world.opened();
    expect(opened).toMatchObject({ status: 'unavailable', code: 'grant_limit_exceeded' });
    expect(world.records.at(-1)).toMatchObject({
      type: 'authority.resolved',
      outcome: 'failed',
      reason: 'authority_unavailable',
      metadata: { failClosed: true, authority: 'grant_limit_exceeded' },
    });
    const question = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
    expect(await world.verdict(opened.token, question)).toMatchObject({ status: 'denied', code: 'authority_unavailable' });
  });
});

describe('a turn and a revocation under skewed clocks', () => {
  it.each([
    ['ahead of', '2026-01-01T12:00:10Z'],
    ['behind', '2026-01-01T11:59:50Z'],
  ])('the revocation stamped %s the clock that opens is never in the turn’s future', async (_, stamped) => {
    const here = await authorizerWorld();
    const there = await authorizerWorld({ store: here.store, clock: manualClock(stamped) });
    await here.issue('g');
    expect(await there.revoke('g')).toMatchObject({ ok: true, value: { revision: 'log@2' } });
    const opened = await here.opened();
    expect(Date.parse(opened.admittedAt)).toBe(Math.max(noon, Date.parse(stamped)));
    const question = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
    expect(await here.verdict(opened.token, question)).toMatchObject({ status: 'denied', code: 'no_matching_grant' });
    expect(here.fold.index.grantAt('w1', 'g', 2, Date.parse(opened.admittedAt))?.window.revokedAt).toBeLessThanOrEqual(
      Date.parse(opened.admittedAt),
    );
  });

  it('admits by the asker’s clock when that one is ahead', async () => {
    const world = await authorizerWorld();
    expect(await world.opened({ context: contextAt('2026-01-01T12:00:02Z') })).toMatchObject({ admittedAt: '2026-01-01T12:00:02.000Z' });
    expect(await world.opened({ context: contextAt('2026-01-01T11:00:00Z') })).toMatchObject({ admittedAt: NOON });
  });
});

describe('a turn that is open', () => {
  it('does not see what was revoked or issued after it, and the next one does', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const before = await world.opened();
    await world.revoke('g');
    await world.issue('h');
    const after = await world.opened();
    const question = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
    expect((await world.verdict(before.token, question)).decision?.matchedGrantId).toBe('g');
    expect((await world.verdict(after.token, question)).decision?.matchedGrantId).toBe('h');
    expect([grantIdsOf(before), grantIdsOf(after)]).toEqual([['g'], ['g', 'h']]);
  });

  it('is answered alike by a replica that did not open it', async () => {
    const opener = await authorizerWorld();
    await opener.issue('g');
    const { token } = await opener.opened();
    await opener.revoke('g');
    const other = await authorizerWorld({ store: opener.store });
    const question = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
    expect(await other.verdict(token, question)).toMatchObject({ status: 'allowed', revision: 'log@1' });
  });

  it('is two views when its id was opened twice, each answered for its own token', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const first = await world.opened({ turnId: 'same' });
    await world.revoke('g');
    const second = await world.opened({ turnId: 'same' });
    const question = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
    expect(await world.verdict(first.token, question)).toMatchObject({ status: 'allowed', revision: 'log@1' });
    expect(await world.verdict(second.token, question)).toMatchObject({ status: 'denied', revision: 'log@2' });
  });

  it('was opened on another log: unavailable', async () => {
    const world = await authorizerWorld();
    const { token } = await world.opened();
    const elsewhere = await authorizerWorld({ store: { ...world.store, storeId: 'another' } });
    expect(await elsewhere.ask(token, { kind: 'authorize', request: toRead('Work'), consume: false })).toMatchObject({
      ok: false,
      error: { code: 'authority_unavailable' },
    });
  });

  it('learns where it may operate and what it may discover, and spends nothing on that', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 1 });
    const { token } = await world.opened();
    const before = world.records.length;
    const ceilings = [toRead(), { ...toRead(), action: 'write' }];
    const asked = { token, context: contextAt(NOON), ceilings };
    expect(await world.reach(asked)).toEqual({
      ok: true,
      value: {
        revision: 'log@1',
        reach: { status: 'computed', reach: [{ namespace: 'files', path: ['Work'], actions: ['read'], scope: 'descendants' }] },
        discovered: [
          { allowed: true, reasonCode: 'allowed' },
          { allowed: false, reasonCode: 'no_matching_grant' },
        ],
      },
    });
    expect(await world.ports.usage.count([{ namespaceId: 'w1', grantId: 'g', max: 1 }])).toEqual({ ok: true, value: [0] });
    expect(world.records).toHaveLength(before);
    world.counters.stall();
    expect(await world.reach(asked)).toMatchObject({
      ok: true,
      value: { reach: { status: 'unavailable', reasonCode: 'usage_store_unavailable' } },
    });
    expect(await world.reach({ ...asked, context: contextAt(NOON, { actor: alice }) })).toMatchObject({
      ok: false,
      error: { code: 'authority_unavailable' },
    });
  });
});

it('a derived grant falls with its parent at the next opening', async () => {
  const world = await authorizerWorld();
  await world.issue('parent', { delegationDepth: 1 });
  expect(await world.derive('parent', 'child')).toMatchObject({ ok: true });
  const context = contextAt(NOON, { actor: carol, authority: { kind: 'agent', agentId: 'bob' } });
  const question = { kind: 'authorize', request: toRead('Work', 'Notes'), consume: false } as const;
  const before = await world.opened({ context });
  await world.revoke('parent');
  const after = await world.opened({ context });
  expect(await world.verdict(before.token, question, context)).toMatchObject({ status: 'allowed' });
  expect(await world.verdict(after.token, question, context)).toMatchObject({ status: 'denied', code: 'delegation_chain_invalid' });
});
