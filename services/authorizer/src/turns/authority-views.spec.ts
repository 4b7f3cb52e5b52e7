import type { Address, GrantExplain, GrantWho, Revision } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { admin, alice, authorizerWorld, bob, carol, contextAt, NOON, toRead } from '../authorizer.fixture.ts';
import { explainForPrincipal, explainForService } from './explain-authority.ts';
import { whoForPrincipal, whoForService } from '../views/who-holds.ts';

const at = (position: number): Revision => `log@${position}` as Revision;

const viewed = async () => {
  const world = await authorizerWorld({ deadlineMs: 5_000 });
  const explain = explainForPrincipal(world.ports, world.turns);
  const who = whoForPrincipal(world.ports, world.turns);
  return {
    world,
    explain: (more: Partial<GrantExplain> = {}, principal: Address = alice) =>
      explain(
        { actor: bob, authority: alice, purpose: 'p1', request: toRead('Work', 'x'), ...more },
        world.delivery('grant.explain', principal),
      ),
    who: (more: Partial<GrantWho> = {}, principal: Address = alice) =>
      who({ ...toRead('Work', 'x'), ...more }, world.delivery('grant.who', principal)),
  };
};

describe('explaining a decision', () => {
  it('names every grant that did not allow it, and what it failed', async () => {
    const { world, explain } = await viewed();
    await world.issue('revoked');
    await world.issue('other-purpose', { purposes: ['p2'] });
    await world.issue('expired', { expiresAt: '2026-01-01T12:00:00.001Z' });
    await world.revoke('revoked');
    world.clock.advance(1_000);
    const answer = await explain();
    expect(answer).toMatchObject({
      ok: true,
      value: { revision: 'log@4', decision: { allowed: false, reasonCode: 'no_matching_grant' }, grantsResolved: 3, omitted: 0 },
    });
    expect(answer.ok && Object.fromEntries(answer.value.rejections.map(({ grantId, reason }) => [grantId, reason]))).toEqual({
      revoked: 'window',
      expired: 'window',
      'other-purpose': 'purpose',
    });
  });

  it('is of the revision that is named, side by side with the present', async () => {
    const { world, explain } = await viewed();
    await world.issue('g');
    await world.revoke('g');
    expect(await explain({ revision: at(1) })).toMatchObject({ ok: true, value: { revision: 'log@1', decision: { matchedGrantId: 'g' } } });
    expect(await explain()).toMatchObject({ ok: true, value: { revision: 'log@2', rejections: [{ grantId: 'g', reason: 'window' }] } });
  });

  it('counts the uses of a bounded grant and takes none', async () => {
    const { world, explain } = await viewed();
    await world.issue('g', { maxUses: 1 });
    for (let times = 0; times < 3; times += 1)
      expect(await explain()).toMatchObject({ ok: true, value: { decision: { allowed: true }, usage: { g: 0 } } });
  });

  it('says why authority cannot be held', async () => {
    const { world, explain } = await viewed();
    for (let number = 0; number < 257; number += 1) await world.issue(`g-${number}`);
    expect(await explain()).toMatchObject({ ok: true, value: { unavailable: 'grant_limit_exceeded', rejections: [] } });
  });

  it('waits for the revision that is named, and is unavailable for one that is forgotten or of another log', async () => {
    const { world, explain } = await viewed();
    const answer = explain({ revision: at(1) });
    await world.issue('g');
    expect(await answer).toMatchObject({ ok: true, value: { decision: { allowed: true } } });
    world.clock.advance(60_000);
    await world.issue('h');
    world.fold.forget(world.clock.now());
    expect(await explain({ revision: at(1) })).toMatchObject({ ok: false, error: { code: 'authority_unavailable' } });
    expect(await explain({ revision: 'other@1' as Revision })).toMatchObject({ ok: false, error: { code: 'invalid_request' } });
  });

  it('of what is somebody else’s is refused and recorded, but for whoever may read authority', async () => {
    const { world, explain } = await viewed();
    await world.issue('g');
    expect(await explain({ owner: alice }, bob)).toMatchObject({ ok: false, error: { code: 'not_an_administrator' } });
    expect(world.records.at(-1)).toMatchObject({
      type: 'admin.refused',
      outcome: 'denied',
      resource: { namespace: 'sharedos.admin', path: ['authority'] },
    });
    expect(await explain({ owner: alice }, admin)).toMatchObject({ ok: true, value: { decision: { matchedGrantId: 'g' } } });
  });

  it('is given to a service for the context that it decides in', async () => {
    const { world } = await viewed();
    await world.issue('g');
    const explain = explainForService(world.ports, world.turns);
    const asked = { context: contextAt(NOON), request: toRead('Elsewhere') };
    expect(await explain(asked)).toMatchObject({ ok: true, value: { rejections: [{ grantId: 'g', reason: 'capability' }] } });
  });
});

describe('who could do something', () => {
  const named = (answer: Awaited<ReturnType<Awaited<ReturnType<typeof viewed>>['who']>>) =>
    answer.ok ? answer.value.holders.map(({ grantId }) => grantId) : answer.error.code;

  it('is every holder of a grant that would allow it now, derived ones too, each once', async () => {
    const { world, who } = await viewed();
    await world.issue('to-bob', { delegationDepth: 1 });
    await world.issue('to-bob-too', { expiresAt: '2026-01-01T13:00:00Z' });
    await world.issue('to-carol', { purposes: ['p2'] }, { to: carol });
    await world.derive('to-bob', 'from-bob');
    const answer = await who({ resource: { namespace: 'files', path: ['Work', 'Notes'] } });
    expect(answer).toMatchObject({
      ok: true,
      value: {
        holders: [
          { subject: bob, authority: alice, grantId: 'to-bob-too' },
          { subject: carol, authority: alice, grantId: 'to-carol' },
          { subject: carol, authority: bob, grantId: 'from-bob' },
        ],
      },
    });
    expect(named(await who({ purpose: 'p1' }))).toEqual(['to-bob-too']);
    expect(named(await who({ action: 'write' }))).toEqual([]);
    await world.revoke('to-bob');
    expect(named(await who({ resource: { namespace: 'files', path: ['Work', 'Notes'] } }))).toEqual(['to-bob-too', 'to-carol']);
  });

  it('is told as it was at a revision', async () => {
    const { world, who } = await viewed();
    await world.issue('a');
    await world.issue('b', {}, { to: carol });
    await world.revoke('a');
    expect(named(await who({ revision: at(1) }))).toEqual(['a']);
    expect(named(await who({ revision: at(2) }))).toEqual(['a', 'b']);
    expect(named(await who())).toEqual(['b']);
  });

  it('is told a page at a time, whole', async () => {
    const { world, who } = await viewed();
    for (const number of [1, 2, 3, 4, 5]) await world.issue(`g-${number}`, {}, { to: { kind: 'agent', agentId: `a-${number}` } });
    const all: string[] = [];
    let after: GrantWho['after'];
    do {
      const answer = await who({ limit: 2, ...(after === undefined ? {} : { after }) });
      if (!answer.ok) throw new Error(answer.error.code);
      all.push(...answer.value.holders.map(({ grantId }) => grantId));
      after = answer.value.next;
    } while (after !== undefined);
    expect(all).toEqual(['g-1', 'g-2', 'g-3', 'g-4', 'g-5']);
  });

  it('over what is somebody else’s is refused and recorded, but for whoever may read authority', async () => {
    const { world, who } = await viewed();
    await world.issue('g');
    const resource = { namespace: 'files', path: ['Work'], owner: alice };
    expect(named(await who({ resource }, bob))).toBe('not_an_administrator');
    expect(world.records.at(-1)).toMatchObject({ type: 'admin.refused', action: 'grant.who' });
    expect(named(await who({ resource }, admin))).toEqual(['g']);
    const service = whoForService(world.ports, world.turns);
    expect(await service({ resource, action: 'read' }, world.delivery('authority.who'))).toMatchObject({
      ok: true,
      value: { holders: [{ grantId: 'g' }] },
    });
  });
});
