import type { EscalationQuestion } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { composeEscalationGrant, escalationGrantId, escalationIdOf } from './escalation-grant.ts';
import { NOW, alice, at, bob, capability, carol } from './testing/base-world.ts';

const asked = capability(['Work', 'Plan'], { owner: alice, actions: ['read', 'write'] });
const question: EscalationQuestion = {
  id: 'ask-1',
  requester: bob,
  owner: alice,
  authority: alice,
  reviewer: carol,
  purpose: 'p1',
  reason: 'the plan has to be changed',
  traceId: 'trace-1',
  requestedAuthority: {
    id: 'ask-1',
    namespaceId: 'w1',
    requester: bob,
    owner: alice,
    requestedAt: at('09:00:00'),
    capabilities: [asked],
    purpose: 'p1',
  },
  requestedAt: at('09:00:00'),
};
const { requestedAuthority: _, ...withoutAuthority } = question;
const approve = { answer: 'approve' } as const;

describe('the grant of an approval', () => {
  it('is what was asked for, once, for an hour, for that purpose, and not to be passed on', () => {
    expect(composeEscalationGrant('w1', question, approve, NOW)).toEqual({
      ok: true,
      value: {
        id: escalationGrantId('w1', question),
        namespaceId: 'w1',
        subject: bob,
        issuer: alice,
        capabilities: [asked],
        constraints: { purposes: ['p1'], expiresAt: at('11:00:00.000'), maxUses: 1, delegationDepth: 0 },
        issuedAt: at('10:00:00.000'),
        metadata: { escalationId: 'ask-1' },
      },
    });
  });

  it('is what the reviewer gives instead, over the owner’s own resources', () => {
    const given = capability(['Work'], { actions: ['read'] });
    const grant = composeEscalationGrant('w1', question, { ...approve, capabilities: [given], usesMax: 3, expiresAt: at('10:30:00') }, NOW);
    expect(grant).toMatchObject({
      ok: true,
      value: { capabilities: [{ ...given, resource: { owner: alice } }], constraints: { maxUses: 3, expiresAt: at('10:30:00') } },
    });
  });

  it('has one id for one question as it was put, and another when it is put again', () => {
    expect(escalationGrantId('w1', question)).toBe(escalationGrantId('w1', { ...question }));
    expect(escalationGrantId('w1', { ...question, requestedAt: at('09:00:01') })).not.toBe(escalationGrantId('w1', question));
    expect(escalationGrantId('w2', question)).not.toBe(escalationGrantId('w1', question));
  });

  it('is none over what somebody else owns, or in the name of somebody else', () => {
    const foreign = { ...approve, capabilities: [capability(['Work'], { owner: carol })] };
    expect(composeEscalationGrant('w1', question, foreign, NOW)).toEqual({ ok: false, error: { code: 'issuer_not_owner' } });
    expect(composeEscalationGrant('w1', { ...question, authority: carol }, approve, NOW)).toEqual({
      ok: false,
      error: { code: 'issuer_not_owner' },
    });
  });

  it('is none where nobody said what to give', () => {
    expect(composeEscalationGrant('w1', withoutAuthority, approve, NOW)).toEqual({ ok: false, error: { code: 'nothing_to_grant' } });
  });
});

describe('a question that names no authority', () => {
  it('is the same for the same asker, matter and reason, and another otherwise', () => {
    const id = escalationIdOf('w1', question);
    expect(escalationIdOf('w1', { ...question, traceId: 'trace-2' } as EscalationQuestion)).toBe(id);
    expect(escalationIdOf('w1', { ...question, reason: 'something else' })).not.toBe(id);
    expect(escalationIdOf('w1', { ...question, requester: carol })).not.toBe(id);
  });
});
