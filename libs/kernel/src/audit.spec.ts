import { AuditEvent } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import {
  type AuditMark,
  adminChanged,
  adminRefused,
  authorityResolved,
  authorizationChecked,
  escalationRequested,
  messageSent,
  toolCatalogListed,
  toolInvoked,
  turnEnded,
} from './audit.ts';
import { toolCatalogHash } from './catalog.ts';
import { decidedWithoutAuthority } from './decide.ts';
import { capabilityRequestOf } from './required-authority.ts';
import { CONSUME, NOW, alice, at, authorityOf, bob, capability, context, decided, grantOf, read, worldOf } from './testing/base-world.ts';

const mark: AuditMark = { id: 'audit-1', at: NOW, context: context() };
const base = {
  version: '1',
  id: 'audit-1',
  at: at('10:00:00.000'),
  traceId: 'trace-1',
  namespaceId: 'w1',
  actor: bob,
  authority: alice,
  owner: alice,
  purpose: 'p1',
};
/** A record must meet its contract as it stands: parsing it changes nothing. */
const recorded = (event: AuditEvent): AuditEvent => {
  expect(AuditEvent.parse(event)).toEqual(event);
  return event;
};
const work = read(['Work']);
const g = grantOf();

describe('the record of a load', () => {
  it('names the authority held', () => {
    const authority = authorityOf([grantOf('b'), grantOf('a')]);
    expect(recorded(authorityResolved(mark, { authority }, { hostCeiling: 'absent', policy: undefined }))).toEqual({
      ...base,
      type: 'authority.resolved',
      outcome: 'succeeded',
      authorityHash: authority.snapshot.hash,
      metadata: { grantIds: ['a', 'b'], grantCount: 2, hostCeiling: 'absent', hostPolicy: 'absent' },
    });
  });
  it('says why there is none, and that it failed closed', () => {
    const detail = { grantId: 'x', reason: 'issuer' } as const;
    const failure = { code: 'grant_scope_mismatch', detail } as const;
    expect(recorded(authorityResolved(mark, { failure }, { hostCeiling: 'installed', policy: { status: 'unavailable' } }))).toEqual({
      ...base,
      type: 'authority.resolved',
      outcome: 'failed',
      reason: 'authority_unavailable',
      metadata: {
        failClosed: true,
        authority: 'grant_scope_mismatch',
        rejectedGrants: [detail],
        hostCeiling: 'installed',
        hostPolicy: 'unavailable',
      },
    });
  });
});

describe('the record of a decision', () => {
  const hash = authorityOf([g]).snapshot.hash;
  it('names the grant that allowed, and does not explain', () =>
    expect(
      recorded(
        authorizationChecked(mark, {
          request: work,
          decided: decided([g], work),
          consume: true,
          authorityHash: hash,
          operationId: 'call-1',
        }),
      ),
    ).toEqual({
      ...base,
      type: 'authorization.checked',
      outcome: 'allowed',
      resource: work.resource,
      action: 'read',
      authorityHash: hash,
      operationId: 'call-1',
      grantId: 'g',
      metadata: { consumed: true },
    }));
  it('says that a use was taken only when one was', () => {
    const bounded = decided([grantOf('g', { maxUses: 1 })], work, CONSUME);
    expect(authorizationChecked(mark, { request: work, decided: bounded, consume: true }).metadata).toEqual({
      consumed: true,
      usageTaken: true,
    });
    const spent = decided([grantOf('g', { maxUses: 1 })], work, { ...CONSUME, world: worldOf({ uses: { g: 1 } }).world });
    expect(authorizationChecked(mark, { request: work, decided: spent, consume: true }).metadata).not.toHaveProperty('usageTaken');
  });
  it('says that it was about what may be discovered, which is judged by other rules', () =>
    expect(
      authorizationChecked(mark, { request: work, decided: decided([g], work), consume: false, mode: 'discover' }).metadata,
    ).toMatchObject({ mode: 'discover' }));
  it('explains a denial', () =>
    expect(
      recorded(authorizationChecked(mark, { request: read(['X']), decided: decided([g], read(['X'])), consume: false })),
    ).toMatchObject({
      outcome: 'denied',
      reason: 'no_matching_grant',
      metadata: { consumed: false, grantsResolved: 1, rejectedGrants: [{ grantId: 'g', reason: 'capability' }] },
    }));
  it('marks an outage, and what was missing', () =>
    expect(
      authorizationChecked(mark, { request: work, decided: decided([grantOf('g', { maxUses: 1 })], work, { world: {} }), consume: false })
        .metadata,
    ).toEqual({
      consumed: false,
      failClosed: true,
      grantsResolved: 1,
      rejectedGrants: [],
      missingDependency: 'usageStore',
    }));
  it('has no hash where there was no authority', () =>
    expect(
      recorded(
        authorizationChecked(mark, { request: work, decided: decidedWithoutAuthority({ code: 'grant_source_failed' }), consume: false }),
      ),
    ).toEqual({
      ...base,
      type: 'authorization.checked',
      outcome: 'denied',
      resource: work.resource,
      action: 'read',
      reason: 'authority_unavailable',
      metadata: { authority: { code: 'grant_source_failed' }, consumed: false, failClosed: true },
    }));
  it("keeps what policy said, except where it speaks in the kernel's place", () => {
    const metadata = { rule: 'freeze', consumed: true, failClosed: true, usageTaken: true, revision: 'x@9', grantsResolved: 99 };
    const refused = decided([g], work, { ceiling: () => ({ allowed: false, metadata }) });
    expect(recorded(authorizationChecked(mark, { request: work, decided: refused, consume: false }))).toMatchObject({
      reason: 'host_policy_denied',
      grantId: 'g',
      metadata: { rule: 'freeze', consumed: false, grantsResolved: 1, rejectedGrants: [] },
    });
    expect(Object.keys(authorizationChecked(mark, { request: work, decided: refused, consume: false }).metadata ?? {}).sort()).toEqual([
      'consumed',
      'grantsResolved',
      'rejectedGrants',
      'rule',
    ]);
  });
  it('says where in history it stands', () => {
    const place = { revision: 'log@7', admittedAt: base.at, turnId: 'turn-1', order: 3, usage: { g: 1 } };
    expect(
      recorded(authorizationChecked({ ...mark, place }, { request: work, decided: decided([g], work), consume: true })).metadata,
    ).toEqual({ consumed: true, ...place });
  });
});

describe('the record of a listing', () => {
  const listing = {
    enabledNamespaces: ['files'],
    authorityHash: toolCatalogHash([]),
    catalogHash: toolCatalogHash([]),
    withheldCount: 2,
    withheldByOutage: false,
  };
  it('counts what was withheld, and names no tool', () =>
    expect(recorded(toolCatalogListed(mark, { ...listing, hostPolicyVersion: 'v1' }))).toEqual({
      ...base,
      type: 'tool.catalog.listed',
      outcome: 'succeeded',
      authorityHash: toolCatalogHash([]),
      metadata: {
        catalogHash: toolCatalogHash([]),
        enabledNamespaces: ['files'],
        hostPolicyVersion: 'v1',
        withheldCount: 2,
        source: 'kernel',
      },
    }));
  it('is marked when an outage withheld some', () =>
    expect(toolCatalogListed(mark, { ...listing, withheldByOutage: true }).metadata).toMatchObject({ failClosed: true }));
  it('is a denial without authority', () =>
    expect(recorded(toolCatalogListed(mark, { enabledNamespaces: [], failure: { code: 'grant_limit_exceeded' } }))).toEqual({
      ...base,
      type: 'tool.catalog.listed',
      outcome: 'denied',
      reason: 'authority_unavailable',
      metadata: {
        catalogHash: toolCatalogHash([]),
        enabledNamespaces: [],
        withheldCount: 0,
        failClosed: true,
        authority: 'grant_limit_exceeded',
        source: 'kernel',
      },
    }));
});

describe('the record of a call', () => {
  const call = { operationId: 'call-1', tool: 'files.read', source: 'kernel' } as const;
  it('names the grant, the resource and the catalogue', () =>
    expect(recorded(toolInvoked(mark, { ...call, outcome: 'succeeded', ...work, grantId: 'g', catalogHash: toolCatalogHash([]) }))).toEqual(
      {
        ...base,
        type: 'tool.invoked',
        outcome: 'succeeded',
        operationId: 'call-1',
        tool: 'files.read',
        resource: work.resource,
        action: 'read',
        grantId: 'g',
        metadata: { source: 'kernel', catalogHash: toolCatalogHash([]) },
      },
    ));
  it("keeps the cause that the caller's code hides, and is marked by that code alone", () =>
    expect(
      toolInvoked(mark, { ...call, outcome: 'denied', reason: 'tool_unavailable', cause: 'usage_store_unavailable' }).metadata,
    ).toEqual({
      source: 'kernel',
      cause: 'usage_store_unavailable',
    }));
  it('is marked when the caller heard of an outage', () =>
    expect(toolInvoked(mark, { ...call, outcome: 'denied', reason: 'usage_store_unavailable' }).metadata).toEqual({
      source: 'kernel',
      failClosed: true,
    }));
  it('may be of a refusal by the envelope', () =>
    expect(
      recorded(toolInvoked(mark, { ...call, source: 'envelope', outcome: 'denied', reason: 'tool_unavailable', cause: 'not_offered' }))
        .metadata,
    ).toEqual({
      source: 'envelope',
      cause: 'not_offered',
    }));
});

describe('the record of a message, an escalation and an end', () => {
  it('of a message names who and which, and not what', () =>
    expect(recorded(messageSent(mark, { messageId: 'm-1', receiver: alice, outcome: 'denied', reason: 'no_matching_grant' }))).toEqual({
      ...base,
      type: 'message.sent',
      outcome: 'denied',
      messageId: 'm-1',
      receiver: alice,
      reason: 'no_matching_grant',
      metadata: { source: 'kernel' },
    }));
  it('of an escalation is pending', () => {
    const wanted = capabilityRequestOf(context(), { capabilities: [capability(['Work'])], purpose: 'p1' });
    const requestedAuthority = wanted.ok ? wanted.value : undefined;
    expect(recorded(escalationRequested(mark, { detail: 'may I?', reviewer: alice, operationId: 'e-1', requestedAuthority }))).toEqual({
      ...base,
      type: 'escalation.requested',
      outcome: 'escalated',
      reason: 'escalation_requested',
      operationId: 'e-1',
      requestedAuthority,
      metadata: { detail: 'may I?', reviewer: alice, reviewerAssumed: true, resolution: 'pending' },
    });
  });
  it.each([
    ['succeeded', 'succeeded', undefined, { status: 'succeeded' }],
    ['escalated', 'escalated', undefined, { status: 'escalated', code: 'escalation_requested' }],
    ['denied', 'denied', 'actor_mismatch', { status: 'denied', code: 'actor_mismatch' }],
    ['cancelled, which is written as failed', 'failed', 'turn_cancelled', { status: 'cancelled' }],
  ] as const)('of a turn that %s', (_, outcome, reason, turn) => {
    const event = recorded(turnEnded(mark, { executionId: 'e-1', ...turn }));
    expect(event).toMatchObject({ type: 'turn.ended', outcome, operationId: 'e-1', metadata: { source: 'envelope' } });
    expect(event.reason).toBe(reason);
  });
  it('of a turn says who failed it, and whether by an outage', () =>
    expect(turnEnded(mark, { executionId: 'e-1', status: 'failed', code: 'audit_unavailable', endedBy: 'envelope' }).metadata).toEqual({
      source: 'envelope',
      endedBy: 'envelope',
      failClosed: true,
    }));
  it('of a turn that its runtime failed claims no outage, whatever code the runtime chose', () =>
    expect(turnEnded(mark, { executionId: 'e-1', status: 'failed', code: 'authority_unavailable', endedBy: 'runtime' }).metadata).toEqual({
      source: 'envelope',
      endedBy: 'runtime',
    }));
});

describe('the record of an act of management', () => {
  const act = {
    id: 'audit-1',
    at: NOW,
    namespaceId: 'w1',
    principal: alice,
    traceId: 'trace-1',
    command: 'grant.revoke',
    commandId: 'cmd-1',
    grantId: 'g',
  };
  const own = { ...base, actor: alice, purpose: 'sharedos.admin', action: 'grant.revoke', operationId: 'cmd-1', grantId: 'g' };
  it('is of its principal, for itself', () =>
    expect(recorded(adminChanged({ ...act, place: { revision: 'log@7' } }))).toEqual({
      ...own,
      type: 'admin.changed',
      outcome: 'succeeded',
      metadata: { revision: 'log@7' },
    }));
  it('says why it was refused', () =>
    expect(recorded(adminRefused(act, 'not_the_issuer'))).toEqual({
      ...own,
      type: 'admin.refused',
      outcome: 'denied',
      reason: 'not_the_issuer',
      metadata: {},
    }));
});
