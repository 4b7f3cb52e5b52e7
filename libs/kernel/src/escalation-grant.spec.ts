import type { EscalationQuestion } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { approvalOf, callQuestionId, composeEscalationGrant, escalationGrantId, escalationIdOf } from './escalation-grant.ts';
import { question, requestedAuthority, vagueQuestion } from './testing/asked-question.ts';
import { NOW, alice, at, bob, capability, carol, grantOf } from './testing/base-world.ts';

const approve = { answer: 'approve' } as const;
const approval = { by: carol, commandId: 'command-1', at: NOW };

describe('the grant of an approval', () => {
  it('is what was asked for, once, for an hour, for that purpose, and not to be passed on', () => {
    expect(composeEscalationGrant('w1', question, approve, approval)).toEqual({
      ok: true,
      value: {
        id: escalationGrantId('w1', question),
        namespaceId: 'w1',
        subject: bob,
        issuer: alice,
        capabilities: requestedAuthority.capabilities,
        constraints: { purposes: ['p1'], expiresAt: at('11:00:00.000'), maxUses: 1, delegationDepth: 0 },
        issuedAt: at('10:00:00.000'),
        metadata: { escalationId: 'ask-1', approvedBy: carol, commandId: 'command-1' },
      },
    });
  });

  it('is what the reviewer gives instead, over the owner’s own resources', () => {
    const given = capability(['Work'], { actions: ['read'] });
    const grant = composeEscalationGrant(
      'w1',
      question,
      { ...approve, capabilities: [given], usesMax: 3, expiresAt: at('10:30:00') },
      approval,
    );
    expect(grant).toMatchObject({
      ok: true,
      value: { capabilities: [{ ...given, resource: { owner: alice } }], constraints: { maxUses: 3, expiresAt: at('10:30:00') } },
    });
  });

  it('is for one use where it is about one call, and notes that call', () => {
    const digest = 'a'.repeat(64);
    const about = { ...question, call: { id: 'call-1', tool: 'files.replace', arguments: { text: 'A' }, digest } };
    expect(composeEscalationGrant('w1', about, approve, approval)).toMatchObject({
      ok: true,
      value: { constraints: { maxUses: 1 }, metadata: { callDigest: digest } },
    });
    const twice = composeEscalationGrant('w1', about, { ...approve, usesMax: 2 }, approval);
    expect(twice).toEqual({ ok: false, error: { code: 'bound_to_one_call' } });
  });

  it('says who approved and by which command, and of another grant that is not to be read', () => {
    const grant = composeEscalationGrant('w1', question, approve, approval);
    expect(grant.ok && approvalOf(grant.value)).toEqual(approval);
    expect(approvalOf(grantOf('another'))).toBeUndefined();
  });

  it('has one id for one question as it was put, and another when it is put again', () => {
    expect(escalationGrantId('w1', question)).toBe(escalationGrantId('w1', { ...question }));
    expect(escalationGrantId('w1', { ...question, requestedAt: at('09:00:01') })).not.toBe(escalationGrantId('w1', question));
    expect(escalationGrantId('w2', question)).not.toBe(escalationGrantId('w1', question));
  });

  it('is none over what somebody else owns, or in the name of somebody else', () => {
    const foreign = { ...approve, capabilities: [capability(['Work'], { owner: carol })] };
    expect(composeEscalationGrant('w1', question, foreign, approval)).toEqual({ ok: false, error: { code: 'issuer_not_owner' } });
    expect(composeEscalationGrant('w1', { ...question, authority: carol }, approve, approval)).toEqual({
      ok: false,
      error: { code: 'issuer_not_owner' },
    });
  });

  it('is none where nobody said what to give', () => {
    expect(composeEscalationGrant('w1', vagueQuestion, approve, approval)).toEqual({ ok: false, error: { code: 'nothing_to_grant' } });
  });
});

describe('a question about a call', () => {
  it('is the same for the same missing authority and the same call, and another otherwise', () => {
    const id = callQuestionId('request-1', 'a'.repeat(64));
    expect(callQuestionId('request-1', 'a'.repeat(64))).toBe(id);
    expect(callQuestionId('request-1', 'b'.repeat(64))).not.toBe(id);
    expect(callQuestionId('request-2', 'a'.repeat(64))).not.toBe(id);
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
