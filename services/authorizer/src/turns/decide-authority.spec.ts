import { type AuthorityQuestion, INFRASTRUCTURE_CODES } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { NOON, alice, authorizerWorld, carol, contextAt, toRead } from '../authorizer.fixture.ts';

const plainly = (consume = false, more: { operation?: string } = {}): AuthorityQuestion => ({
  kind: 'authorize',
  request: toRead('Work', 'a.md'),
  consume,
  ...more,
});
const calling = (...path: string[]): AuthorityQuestion => ({
  kind: 'tool',
  ceiling: toRead(),
  exact: { requirement: toRead(...path) },
  operation: `op-${path.join('-')}`,
  operationId: 'call-1',
});

describe('a question of a turn', () => {
  it.each([
    ['without a token of ours', (token: string) => `${token}x`, contextAt(NOON)],
    ['for the context of another turn', (token: string) => token, contextAt(NOON, { actor: carol })],
    ['for another tenant', (token: string) => token, contextAt(NOON, { namespaceId: 'w2' })],
  ])('is not decided %s', async (_, given, context) => {
    const world = await authorizerWorld();
    await world.issue('g');
    const { token } = await world.opened();
    expect(await world.ask(given(token), plainly(), context)).toMatchObject({ ok: false, error: { code: 'authority_unavailable' } });
  });

  it('is not decided once the turn is over by either clock', async () => {
    const world = await authorizerWorld();
    const { token } = await world.opened({ validForMs: 1_000 });
    expect(await world.ask(token, plainly(), contextAt('2026-01-01T12:00:31Z'))).toMatchObject({
      ok: false,
      error: { code: 'authority_unavailable' },
    });
    world.clock.advance(31_000);
    expect(await world.ask(token, plainly(), contextAt(NOON))).toMatchObject({ ok: false, error: { code: 'authority_unavailable' } });
  });

  it('is decided at the latest of admission, given instant and own clock', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { expiresAt: '2026-01-01T12:00:10Z' });
    const { token } = await world.opened();
    const at = async (now: string) => {
      const { code, audit } = await world.verdict(token, plainly(), contextAt(now));
      return [code, audit[0]?.at];
    };
    expect(await at('2026-01-01T11:00:00Z')).toEqual(['allowed', NOON]);
    expect(await at('2026-01-01T12:00:09.999Z')).toEqual(['allowed', '2026-01-01T12:00:09.999Z']);
    expect(await at('2026-01-01T12:00:10Z')).toEqual(['no_matching_grant', '2026-01-01T12:00:10.000Z']);
    world.clock.advance(11_000);
    expect(await at(NOON)).toEqual(['no_matching_grant', '2026-01-01T12:00:11.000Z']);
  });

  it('is never decided before the turn was admitted, whatever the clocks say', async () => {
    const world = await authorizerWorld();
    const { token } = await world.opened({ context: contextAt('2026-01-01T12:00:10Z') });
    expect((await world.verdict(token, plainly(), contextAt('2026-01-01T12:00:01Z'))).audit[0]?.at).toBe('2026-01-01T12:00:10.000Z');
  });

  it('carries its record back, for whoever asked to write with what it allows', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const opened = await world.opened({ turnId: 'turn-7' });
    const written = world.records.length;
    const verdict = await world.verdict(opened.token, plainly(true, { operation: 'op' }));
    expect(verdict.audit).toEqual([
      {
        version: '1',
        id: expect.stringMatching(/^record-\d+$/),
        type: 'authorization.checked',
        outcome: 'allowed',
        at: NOON,
        traceId: 'trace-1',
        namespaceId: 'w1',
        actor: { kind: 'agent', agentId: 'bob' },
        authority: alice,
        owner: alice,
        purpose: 'p1',
        resource: { namespace: 'files', path: ['Work', 'a.md'] },
        action: 'read',
        authorityHash: opened.status === 'resolved' ? opened.snapshot.hash : '',
        grantId: 'g',
        metadata: { consumed: true, revision: 'log@1', admittedAt: NOON, turnId: 'turn-7' },
      },
    ]);
    expect(world.records).toHaveLength(written);
  });

  it('says of a denial which grants were there and why each did not do, in the record alone', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { purposes: ['another'] });
    const { token } = await world.opened();
    const verdict = await world.verdict(token, plainly());
    expect(verdict).toMatchObject({ status: 'denied', code: 'no_matching_grant' });
    expect(verdict.audit).toMatchObject([
      {
        outcome: 'denied',
        reason: 'no_matching_grant',
        metadata: { grantsResolved: 1, rejectedGrants: [{ grantId: 'g', reason: 'purpose' }] },
      },
    ]);
  });
});

describe('a grant of bounded uses', () => {
  it('hands out its uses in order, each under the name of one operation', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 2 });
    const { token } = await world.opened();
    const first = await world.verdict(token, plainly(true, { operation: 'one' }));
    expect(first).toMatchObject({ status: 'allowed', use: { grantId: 'g', ordinal: 1 } });
    expect(first.audit[0]?.metadata).toMatchObject({ usage: { g: 0 }, usageTaken: true, consumed: true });
    expect(await world.verdict(token, plainly(true, { operation: 'one' }))).toMatchObject({ use: { ordinal: 1 } });
    const second = await world.verdict(token, plainly(true, { operation: 'two' }));
    expect([second.use?.ordinal, second.audit[0]?.metadata?.['usage']]).toEqual([2, { g: 1 }]);
    const third = await world.verdict(token, plainly(true, { operation: 'three' }));
    expect(third).toMatchObject({ status: 'denied', code: 'grant_exhausted' });
    expect(third.use).toBeUndefined();
    expect(third.audit[0]?.metadata).toMatchObject({ usage: { g: 2 }, consumed: true });
    expect(third.audit[0]?.metadata?.['usageTaken']).toBeUndefined();
  });

  it('gives no use to what has no name, for a retry would take another', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 2 });
    const { token } = await world.opened();
    expect(await world.verdict(token, plainly(true))).toMatchObject({ status: 'denied', code: 'usage_store_unavailable' });
    expect(await world.ports.usage.count([{ namespaceId: 'w1', grantId: 'g', max: 2 }])).toEqual({ ok: true, value: [0] });
  });

  it('only looks when the question does not consume', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 1 });
    const { token } = await world.opened();
    expect(await world.verdict(token, plainly())).toMatchObject({ status: 'allowed' });
    expect(await world.verdict(token, plainly())).toMatchObject({ status: 'allowed' });
  });

  it('is fail-closed while the counters do not answer, and an unbounded one is not asked about them', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 1 });
    const { token } = await world.opened();
    world.counters.stall();
    const verdict = await world.verdict(token, plainly(true, { operation: 'op' }));
    expect(verdict).toMatchObject({ status: 'denied', code: 'usage_store_unavailable', audit: [{ metadata: { failClosed: true } }] });
    expect(INFRASTRUCTURE_CODES.has(verdict.code)).toBe(true);
    await world.issue('free');
    const next = await world.opened();
    expect(await world.verdict(next.token, plainly(true, { operation: 'op' }))).toMatchObject({
      status: 'allowed',
      decision: { matchedGrantId: 'free' },
    });
  });
});

describe('a tool call', () => {
  it('is decided on its exact requirement after its discovery, with one record', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const { token } = await world.opened();
    expect(await world.verdict(token, calling('Work', 'a.md'))).toMatchObject({
      status: 'allowed',
      resource: { namespace: 'files', path: ['Work', 'a.md'] },
      action: 'read',
      audit: [{ operationId: 'call-1', outcome: 'allowed', metadata: { consumed: true } }],
    });
    const denied = await world.verdict(token, calling('Private', 'a.md'));
    expect([denied.status, denied.code, denied.audit.length]).toEqual(['denied', 'no_matching_grant', 1]);
  });

  it.each(['invalid_tool_arguments', 'tool_requirement_resolution_failed'] as const)(
    'whoever may not discover the tool does not hear of %s',
    async (failure) => {
      const world = await authorizerWorld();
      await world.issue('g', { purposes: ['another'] });
      const hidden = await world.opened();
      const question = { ...calling(), exact: { failure } } as AuthorityQuestion;
      const unseen = await world.verdict(hidden.token, question);
      expect(unseen).toMatchObject({
        status: 'denied',
        code: 'tool_unavailable',
        cause: 'no_matching_grant',
        audit: [{ outcome: 'denied', metadata: { consumed: false } }],
      });
      await world.issue('h');
      const shown = await world.opened();
      expect(await world.verdict(shown.token, question)).toMatchObject({ status: 'failed', code: failure, audit: [] });
    },
  );

  it('spends nothing before its requirement is known to be one the tool may have', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 1 });
    const { token } = await world.opened();
    const beside = { ...calling(), exact: { requirement: { ...toRead('Work'), action: 'write' } } } as AuthorityQuestion;
    expect(await world.verdict(token, beside)).toMatchObject({ status: 'failed', code: 'invalid_tool_requirement', audit: [] });
    const foreign = {
      ...calling(),
      exact: { requirement: { resource: { namespace: 'files', path: ['Work'], owner: carol }, action: 'read' } },
    } as AuthorityQuestion;
    expect(await world.verdict(token, foreign)).toMatchObject({
      status: 'denied',
      code: 'invalid_request',
      audit: [{ metadata: { consumed: false } }],
    });
    expect(await world.ports.usage.count([{ namespaceId: 'w1', grantId: 'g', max: 1 }])).toEqual({ ok: true, value: [0] });
  });

  it('is hidden once its only use is spent, and audit alone says why', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 1 });
    const { token } = await world.opened();
    expect(await world.verdict(token, calling('Work', 'a'))).toMatchObject({ status: 'allowed', use: { ordinal: 1 } });
    expect(await world.verdict(token, calling('Work', 'b'))).toMatchObject({
      status: 'denied',
      code: 'tool_unavailable',
      cause: 'grant_exhausted',
    });
  });
});
