import type { GrantDerive, GrantIssue } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { NOON, alice, authorizerWorld, bob, carol, reading } from '../authorizer.fixture.ts';
import { deriveGrant } from './derive-grant.ts';
import { issueGrant } from './issue-grant.ts';

const refusedWith = (code: string) => ({ ok: false, error: { code, retryable: false } });

describe('issuing a grant', () => {
  it('writes the issuer into it as namespace, issuer, owner and time say, and records the act', async () => {
    const world = await authorizerWorld();
    const reply = await world.issue('g', { maxUses: 2 }, { commandId: 'c-1' });
    const owned = { ...reading('Work'), resource: { namespace: 'files', path: ['Work'], owner: alice } };
    expect(reply).toEqual({
      ok: true,
      value: {
        revision: 'log@1',
        grant: {
          id: 'g',
          namespaceId: 'w1',
          subject: bob,
          issuer: alice,
          capabilities: [owned],
          constraints: { maxUses: 2 },
          issuedAt: NOON,
        },
      },
    });
    expect(world.records).toMatchObject([
      {
        type: 'admin.changed',
        outcome: 'succeeded',
        actor: alice,
        authority: alice,
        owner: alice,
        purpose: 'sharedos.admin',
        action: 'grant.issue',
        operationId: 'c-1',
        grantId: 'g',
        metadata: { revision: 'log@1' },
      },
    ]);
  });

  it.each([
    ['issuer', { issuer: carol }],
    ['owner of a resource', { capabilities: [{ ...reading('Work'), resource: { namespace: 'files', path: ['Work'], owner: carol } }] }],
  ])('is identity_mismatch when it names another %s than the caller', async (_, more) => {
    const world = await authorizerWorld();
    const body: GrantIssue = { commandId: 'c', grant: { id: 'g', subject: bob, capabilities: [reading('Work')], ...more } };
    expect(await issueGrant(world.ports)(body, world.delivery('grant.issue', alice))).toMatchObject(refusedWith('identity_mismatch'));
    expect(world.records).toMatchObject([{ type: 'admin.refused', outcome: 'denied', reason: 'identity_mismatch', grantId: 'g' }]);
    expect(await world.store.barrier(10)).toEqual({ ok: true, value: 0 });
  });

  it('is grant_exists for an id that is used, and for one that was revoked', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    expect(await world.issue('g')).toMatchObject(refusedWith('grant_exists'));
    await world.revoke('g');
    expect(await world.issue('g')).toMatchObject(refusedWith('grant_exists'));
    expect(await world.issue('g', {}, { by: carol })).toMatchObject(refusedWith('grant_exists'));
  });

  it('is command_too_large, and leaves the log readable, when it nests deeper than the log takes', async () => {
    const world = await authorizerWorld();
    const metadata = JSON.parse(`${'{"n":'.repeat(61)}1${'}'.repeat(61)}`) as never;
    const body: GrantIssue = { commandId: 'c', grant: { id: 'g', subject: bob, capabilities: [reading('Work')], metadata } };
    expect(await issueGrant(world.ports)(body, world.delivery('grant.issue', alice))).toMatchObject(refusedWith('command_too_large'));
    expect(world.fold.trouble).toBeUndefined();
    expect(await world.issue('h')).toMatchObject({ ok: true });
  });

  it('is log_unavailable, and to be tried again, while the log does not answer', async () => {
    const world = await authorizerWorld();
    world.store.stop();
    expect(await world.issue('g')).toMatchObject({ ok: false, error: { code: 'log_unavailable', retryable: true } });
    expect(world.records).toEqual([]);
  });
});

describe('a command that is sent again', () => {
  it('gets the first answer and makes the same record', async () => {
    const world = await authorizerWorld();
    const first = await world.issue('g', {}, { commandId: 'c' });
    world.clock.advance(5_000);
    expect(await world.issue('g', {}, { commandId: 'c' })).toEqual(first);
    expect(world.records).toHaveLength(2);
    expect(new Set(world.records.map(({ id }) => id)).size).toBe(1);
    expect(await world.store.barrier(10)).toEqual({ ok: true, value: 1 });
  });

  it('is another command from another principal', async () => {
    const world = await authorizerWorld();
    await world.issue('g', {}, { commandId: 'c' });
    expect(await world.issue('g', {}, { commandId: 'c', by: carol })).toMatchObject(refusedWith('grant_exists'));
  });

  it('makes the same record of the same refusal, and another of any other', async () => {
    const world = await authorizerWorld();
    const again = { by: carol, commandId: 'c' };
    await world.revoke('g', again);
    await world.revoke('g', again);
    await world.revoke('h', again);
    await world.issue('g');
    await world.revoke('g', again);
    const refused = world.records.filter(({ type }) => type === 'admin.refused');
    expect(refused.map(({ grantId, reason }) => [grantId, reason])).toEqual([
      ['g', 'grant_not_found'],
      ['g', 'grant_not_found'],
      ['h', 'grant_not_found'],
      ['g', 'not_the_issuer'],
    ]);
    expect(new Set(refused.map(({ id }) => id)).size).toBe(3);
  });

  it('does not hide a change behind an earlier refusal under its id, nor one grant behind another', async () => {
    const world = await authorizerWorld();
    await world.revoke('g', { commandId: 'c' });
    await world.issue('g', {}, { commandId: 'd' });
    await world.issue('h', {}, { commandId: 'd' });
    await world.revoke('g', { commandId: 'c' });
    expect(world.records.map(({ type }) => type)).toEqual(['admin.refused', 'admin.changed', 'admin.changed', 'admin.changed']);
    expect(new Set(world.records.map(({ id }) => id)).size).toBe(4);
  });
});

describe('revoking a grant', () => {
  it('is refused to anybody but its issuer, its holder included', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    expect(await world.revoke('g', { by: bob })).toMatchObject(refusedWith('not_the_issuer'));
    expect(await world.revoke('unknown')).toMatchObject(refusedWith('grant_not_found'));
  });

  it('changes nothing the second time, and records no second change', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const first = await world.revoke('g');
    world.clock.advance(60_000);
    expect(await world.revoke('g')).toEqual(first);
    expect(first).toMatchObject({ ok: true, value: { grant: { revokedAt: NOON }, revision: 'log@2' } });
    expect(world.records.map(({ type }) => type)).toEqual(['admin.changed', 'admin.changed']);
  });

  it('stands even when it cannot be recorded', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    world.auditWorks = false;
    expect(await world.revoke('g')).toMatchObject({ ok: true });
    expect(await world.revoke('g', { by: bob })).toMatchObject(refusedWith('not_the_issuer'));
  });
});

describe('deriving a grant', () => {
  it('passes on part of what its holder holds', async () => {
    const world = await authorizerWorld();
    await world.issue('parent', { delegationDepth: 1, expiresAt: '2026-01-01T13:00:00Z' });
    expect(await world.derive('parent', 'child')).toMatchObject({
      ok: true,
      value: {
        grant: { id: 'child', issuer: bob, subject: carol, parentGrantId: 'parent', constraints: { expiresAt: '2026-01-01T13:00:00Z' } },
        revision: 'log@2',
      },
    });
  });

  it.each([
    ['not_the_holder', { by: carol }],
    ['identity_mismatch', { issuer: alice }],
  ])('is %s for anybody else', async (code, more) => {
    const world = await authorizerWorld();
    await world.issue('parent', { delegationDepth: 1 });
    expect(await world.derive('parent', 'child', more)).toMatchObject(refusedWith(code));
    expect(world.records.at(-1)).toMatchObject({ type: 'admin.refused', action: 'grant.derive', grantId: 'child', reason: code });
  });

  it('is refused of what was revoked, is not there, or may not be passed on', async () => {
    const world = await authorizerWorld();
    await world.issue('final');
    expect(await world.derive('final', 'child')).toMatchObject({ ok: false });
    await world.issue('parent', { delegationDepth: 1 });
    await world.revoke('parent');
    expect(await world.derive('parent', 'child')).toMatchObject(refusedWith('parent_inactive'));
    expect(await world.derive('nothing', 'child')).toMatchObject(refusedWith('grant_not_found'));
  });

  it('is refused of more than the parent has', async () => {
    const world = await authorizerWorld();
    await world.issue('parent', { delegationDepth: 1 });
    const body: GrantDerive = {
      commandId: 'c',
      parentGrantId: 'parent',
      grant: { id: 'child', subject: carol, capabilities: [reading()] },
    };
    expect(await deriveGrant(world.ports)(body, world.delivery('grant.derive', bob))).toMatchObject({ ok: false });
    expect(await world.store.barrier(10)).toEqual({ ok: true, value: 1 });
  });
});
