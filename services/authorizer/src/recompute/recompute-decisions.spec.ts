import { type AuditEvent, type CapabilityGrant, type Recomputed, timestampOf } from '@sharedos/contracts';
import { type Decided, decide } from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { type World, alice, authorizerWorld, bob, carol, contextAt } from '../authorizer.fixture.ts';
import { grantLineage } from '../fold/grant-lineage.ts';
import { livedThrough, recomputed } from './lived-through.fixture.ts';
import { LogHistory } from './log-history.ts';
import type { DecisionRule } from './recompute-decision.ts';
import { retraceDecision } from './retrace-decision.ts';

/** Decisions computed again; `npm run fuzz -- decisions` does a hundred thousand. */
const DECISIONS = 1_500;
const PATIENCE_MS = 180_000;

const statuses = (answers: readonly Recomputed[]): readonly string[] => [...new Set(answers.map(({ status }) => status))];

const decidedOf = async (world: World, path: readonly string[], more: { readonly consume?: boolean } = {}): Promise<AuditEvent> => {
  const { token } = await world.opened();
  const request = { resource: { namespace: 'files', path: [...path] }, action: 'read' };
  const verdict = await world.verdict(token, { kind: 'authorize', request, consume: false, ...more, operation: `op-${path.join('-')}` });
  return verdict.audit[0] as AuditEvent;
};

describe('decisions computed again', () => {
  it('come out as they were recorded, every one', { timeout: PATIENCE_MS }, async () => {
    const { world, recorded } = await livedThrough(7, DECISIONS);
    const answers = await recomputed(world, recorded);
    const wrong = answers.flatMap((answer, index) => (answer.status === 'same' ? [] : [{ answer, event: recorded[index] }]));
    expect(wrong.slice(0, 3)).toEqual([]);
    // A life in which little happened would prove little.
    const reasons = new Set(recorded.map(({ reason, outcome }) => reason ?? outcome));
    for (const reason of ['allowed', 'no_matching_grant', 'grant_exhausted', 'host_policy_denied']) expect(reasons).toContain(reason);
    expect(recorded.some(({ metadata }) => metadata?.['mode'] === 'discover')).toBe(true);
    expect(recorded.some(({ metadata }) => metadata?.['revocationChecks'] !== undefined)).toBe(true);
    await world.close();
  });

  it('tell a build in which one rule was changed', { timeout: PATIENCE_MS }, async () => {
    const { world, recorded } = await livedThrough(11, DECISIONS);
    const changed: Readonly<Record<string, DecisionRule>> = {
      'expiry is judged when the turn was admitted': (turn, { request, mode, consume, admittedAt }) =>
        ruleOver(turn, request, { now: admittedAt, mode, consume, checks: turn.held.checks, ceiling: turn.held.ceiling }),
      'policy is not asked': (turn, { request, mode, consume, now }) =>
        ruleOver(turn, request, { now, mode, consume, checks: turn.held.checks }),
      'revocations inside a turn are not seen': (turn, { request, mode, consume, now }) =>
        ruleOver(turn, request, { now, mode, consume, ceiling: turn.held.ceiling }),
      'a discovery needs what an execution needs': (turn, { request, consume, now }) =>
        ruleOver(turn, request, { now, mode: 'execute', consume, checks: turn.held.checks, ceiling: turn.held.ceiling }),
    };
    for (const [name, rule] of Object.entries(changed)) {
      const answers = await recomputed(world, recorded, {}, rule);
      expect([name, statuses(answers).includes('differs')]).toEqual([name, true]);
    }
    await world.close();
  });

  it('tell a record whose outcome, reason, grant or counts were changed', async () => {
    const world = await authorizerWorld();
    await world.issue('g', { maxUses: 1 });
    const first = await decidedOf(world, ['Work', 'a'], { consume: true });
    const second = await decidedOf(world, ['Work', 'b'], { consume: true });
    expect([first.outcome, second.reason]).toEqual(['allowed', 'grant_exhausted']);
    expect(statuses(await recomputed(world, [first, second]))).toEqual(['same']);
    const { reason: _, ...withoutReason } = second;
    const forged: AuditEvent[] = [
      { ...first, grantId: 'another' },
      { ...first, outcome: 'denied', reason: 'no_matching_grant' },
      { ...withoutReason, outcome: 'allowed' },
      { ...second, metadata: { ...second.metadata, usage: { g: 0 } } },
      { ...first, authorityHash: '0'.repeat(64) },
    ];
    expect(statuses(await recomputed(world, forged))).toEqual(['differs']);
    await world.close();
  });

  it('have no basis where the record states none, and where the log is another one', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const event = await decidedOf(world, ['Work']);
    const { admittedAt: _, ...older } = event.metadata ?? {};
    const outage: AuditEvent = { ...event, outcome: 'denied', reason: 'usage_store_unavailable', metadata: { consumed: true } };
    const elsewhere: AuditEvent = { ...event, metadata: { ...event.metadata, revision: 'other@1' } };
    expect(await recomputed(world, [{ ...event, metadata: older }, outage, elsewhere])).toEqual([
      { status: 'no_basis', why: 'not_stated' },
      { status: 'no_basis', why: 'outage' },
      { status: 'no_basis', why: 'another_log' },
    ]);
    await world.close();
  });

  it("are of the caller's namespace alone", async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const event = { ...(await decidedOf(world, ['Work'])), namespaceId: 'w2' };
    await expect(recomputed(world, [event])).rejects.toThrow('only decisions of this namespace');
    await world.close();
  });
});

describe('a supposed revocation', () => {
  it('changes what was allowed by the grant or by one derived from it, and nothing else', async () => {
    const world = await authorizerWorld();
    await world.issue('top', { delegationDepth: 2 });
    await world.issue('other', {}, { to: bob });
    await world.derive('top', 'below');
    const byOther = await decidedOf(world, ['Work', 'a']);
    const context = contextAt(timestampOf(world.clock.now()), { actor: carol, authority: bob });
    const { token } = await world.opened({ context });
    const request = { resource: { namespace: 'files', path: ['Work', 'Notes', 'x'] }, action: 'read' };
    const byBelow = (await world.verdict(token, { kind: 'authorize', request, consume: false }, context)).audit[0] as AuditEvent;
    expect(byBelow.grantId).toBe('below');
    const answers = await recomputed(world, [byOther, byBelow], { suppose: { kind: 'revoke', grantId: 'top' } });
    expect(answers[1]).toMatchObject({ status: 'differs', computed: { outcome: 'denied', reason: 'delegation_chain_invalid' } });
    expect(answers[0]).toMatchObject(byOther.grantId === 'top' ? { status: 'differs' } : { status: 'same' });
    expect(await recomputed(world, [byOther, byBelow], { suppose: { kind: 'revoke', grantId: 'unknown' } })).toEqual([
      { status: 'same' },
      { status: 'same' },
    ]);
    await world.close();
  });
});

describe('a supposed grant', () => {
  const terms = (more: Partial<CapabilityGrant> = {}) => ({
    id: 'supposed',
    subject: bob,
    capabilities: [{ resource: { namespace: 'files', path: ['Elsewhere'] }, actions: ['read'], scope: 'descendants' as const }],
    ...more,
  });
  it('allows what was denied for want of it, to its holder alone, and is as bounded as it says', async () => {
    const world = await authorizerWorld();
    await world.issue('g');
    const denied = await decidedOf(world, ['Elsewhere', 'x']);
    const allowed = await decidedOf(world, ['Work', 'x']);
    const suppose = (more: Partial<CapabilityGrant> = {}) =>
      recomputed(world, [denied, allowed], { suppose: { kind: 'issue', issuer: alice, grant: terms(more) } });
    expect(await suppose()).toEqual([
      {
        status: 'differs',
        fields: ['outcome', 'reason', 'grant'],
        computed: expect.objectContaining({ outcome: 'allowed', grantId: 'supposed' }),
      },
      { status: 'same' },
    ]);
    expect(await suppose({ constraints: { maxUses: 1 } })).toMatchObject([{ status: 'differs' }, { status: 'same' }]);
    expect(statuses(await suppose({ subject: carol }))).toEqual(['same']);
    expect(statuses(await suppose({ constraints: { purposes: ['another'] } }))).toEqual(['same']);
    await world.close();
  });
});

describe('one decision, retraced', () => {
  it('names the grants that nearly matched, the nearest first', async () => {
    const world = await authorizerWorld();
    await world.issue('of-another-purpose', { purposes: ['p2'] });
    await world.issue('spent', { maxUses: 1 });
    await decidedOf(world, ['Work', 'a'], { consume: true });
    const event = await decidedOf(world, ['Work', 'b'], { consume: true });
    const history = new LogHistory(world.store);
    const answer = await retraceDecision(world.ports, history)({ decision: event }, world.delivery('authority.retrace'));
    expect(answer).toMatchObject({
      ok: true,
      value: {
        answer: { status: 'same' },
        computed: { outcome: 'denied', reason: 'grant_exhausted' },
        grantsResolved: 2,
        grants: [
          { grant: { id: 'spent' }, reason: 'exhausted' },
          { grant: { id: 'of-another-purpose' }, reason: 'purpose' },
        ],
      },
    });
    await history.close();
    await world.close();
  });
});

describe('the lineage of a grant', () => {
  it('goes up to its root, with who issued and revoked each', async () => {
    const world = await authorizerWorld();
    await world.issue('top', { delegationDepth: 2 });
    await world.derive('top', 'below');
    await world.revoke('top');
    const answer = await grantLineage(world.ports)({ grantId: 'below' }, world.delivery('authority.lineage'));
    expect(answer).toMatchObject({
      ok: true,
      value: {
        links: [
          { grant: { id: 'below' }, issued: { principal: bob, revision: 'log@2' } },
          {
            grant: { id: 'top', revokedAt: expect.any(String) },
            issued: { principal: alice, revision: 'log@1' },
            revoked: { principal: alice },
          },
        ],
      },
    });
    expect(await grantLineage(world.ports)({ grantId: 'unknown' }, world.delivery('authority.lineage'))).toEqual({
      ok: true,
      value: { links: [] },
    });
    await world.close();
  });
});

describe('the log from its beginning', () => {
  it('is given up when nobody has used it for a while, and where it is too large', async () => {
    const world = await authorizerWorld();
    await world.issue('a');
    await world.issue('b');
    const brief = new LogHistory(world.store, { idleMs: 1, grantsMax: 10 });
    expect((await brief.upTo(2, 1_000)).ok).toBe(true);
    await expect.poll(() => brief.isKept).toBe(false);
    const small = new LogHistory(world.store, { idleMs: 60_000, grantsMax: 1 });
    expect(await small.upTo(2, 1_000)).toMatchObject({ ok: false, error: expect.stringContaining('more than 1 grants') });
    expect(small.isKept).toBe(false);
    await world.close();
  });
});

const ruleOver = (
  { authority }: Parameters<DecisionRule>[0],
  request: Parameters<typeof decide>[1],
  options: Parameters<typeof decide>[2],
): ReturnType<DecisionRule> => {
  if (!authority.ok) throw new Error('no authority of this life is unavailable');
  return decide(authority.value.held, request, options) satisfies Generator<unknown, Decided, unknown>;
};
