import { type Address, EscalationEvent } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { Defect } from './decider.ts';
import { type EscalationCommand, escalation } from './escalation.ts';
import { question, requestedAuthority, vagueQuestion } from './testing/asked-question.ts';
import { NOW, alice, at, bob, capability, carol, dave, grantOf, instant } from './testing/base-world.ts';
import { given } from './testing/given.ts';

const TEN = at('10:00:00.000');
const answer = (changes: Parameters<typeof grantOf>[1] = {}) =>
  grantOf('answer', { capabilities: requestedAuthority.capabilities, purposes: ['p1'], expiresAt: at('11:00:00'), maxUses: 1, ...changes });
const narrower = answer({ capabilities: [capability(['Work', 'Plan'], { owner: alice, actions: ['read'] })] });

const open: EscalationCommand = { type: 'OpenEscalation', question };
const approve = (by: Address = carol, grant = answer(), when = NOW): EscalationCommand => ({
  type: 'ApproveEscalation',
  grant,
  by,
  at: when,
});
/** Dave, whom the owner registered. */
const asRegistered = { by: dave, registered: true } as const;
const refuse = (by: Address = carol, reason?: string): EscalationCommand => ({ type: 'RefuseEscalation', by, at: NOW, reason });
const withdraw = (by: Address = bob): EscalationCommand => ({ type: 'WithdrawEscalation', by, at: NOW });
const expire = (when: string): EscalationCommand => ({ type: 'ExpireEscalation', at: instant(when) });

const opened: EscalationEvent = { type: 'EscalationOpened', question };
const approved: EscalationEvent = { type: 'EscalationApproved', escalationId: 'ask-1', by: carol, answeredAt: TEN, grant: answer() };
const narrowed: EscalationEvent = { type: 'EscalationNarrowed', escalationId: 'ask-1', by: carol, answeredAt: TEN, grant: narrower };
const refused: EscalationEvent = { type: 'EscalationRefused', escalationId: 'ask-1', by: carol, answeredAt: TEN };
const expired: EscalationEvent = { type: 'EscalationExpired', escalationId: 'ask-1', expiredAt: at('12:00:00.000') };
const withdrawn: EscalationEvent = { type: 'EscalationWithdrawn', escalationId: 'ask-1', by: bob, withdrawnAt: TEN };

describe('opening an escalation', () => {
  it('puts the question', () => given(escalation, []).when(open).thenEvents(opened));
  it('changes nothing while it is open: the same ask has one place', () => given(escalation, [opened]).when(open).thenNothing());
  it('puts it again once nobody can answer it any more', () => {
    const again = { ...question, requestedAt: at('12:00:00.000'), expiresAt: at('13:00:00') };
    given(escalation, [opened])
      .when({ type: 'OpenEscalation', question: again })
      .thenEvents(expired, { type: 'EscalationOpened', question: again });
  });
  it.each([approved, narrowed, refused, expired, withdrawn])('puts it again after it was answered: $type', (answered) =>
    given(escalation, [opened, answered]).when(open).thenEvents(opened),
  );
});

describe('approving an escalation', () => {
  it('is one record with its grant', () => given(escalation, [opened]).when(approve()).thenEvents(approved));
  it('is open to the owner, whoever reviews', () =>
    given(escalation, [opened])
      .when(approve(alice))
      .thenEvents({ ...approved, by: alice }));
  it('is told as narrowed when it gives less than was asked', () =>
    given(escalation, [opened]).when(approve(carol, narrower)).thenEvents(narrowed));
  it('gives what its reviewer says where no authority was named', () => {
    given(escalation, [{ type: 'EscalationOpened', question: vagueQuestion }])
      .when(approve(carol, narrower))
      .thenEvents({ ...narrowed, type: 'EscalationApproved' });
  });
  it.each([
    ['the requester', bob],
    ['a stranger', dave],
  ])('is refused to %s', (_, by) => given(escalation, [opened]).when(approve(by)).thenRefused({ code: 'not_the_reviewer' }));
  it.each([
    ['issuer_not_authority', { issuer: carol }],
    ['subject_not_requester', { subject: dave }],
    ['wider_than_request', { capabilities: [capability(['Work'], { owner: alice })] }],
    ['wider_than_request', { capabilities: [capability(['Work', 'Plan'], { owner: carol })] }],
    ['wider_than_request', { capabilities: [...requestedAuthority.capabilities, capability([], { owner: alice })] }],
    ['purpose_not_requested', { purposes: ['p1', 'p2'] }],
    ['purpose_not_requested', { purposes: undefined as never }],
    ['answer_must_expire', { expiresAt: undefined as never }],
    ['answer_delegable', { delegationDepth: 1 }],
  ] as const)('is refused of a grant that is no answer: %s', (code, changes) =>
    given(escalation, [opened])
      .when(approve(carol, answer(changes as Parameters<typeof grantOf>[1])))
      .thenRefused({ code }),
  );
  it('is refused from the moment the question expires', () =>
    given(escalation, [opened])
      .when(approve(carol, answer(), instant('12:00:00')))
      .thenRefused({ code: 'escalation_expired' }));
});

describe('a registered reviewer', () => {
  it('approves and refuses in the place of the owner', () => {
    given(escalation, [opened])
      .when({ ...approve(), ...asRegistered } as EscalationCommand)
      .thenEvents({ ...approved, by: dave });
    given(escalation, [opened])
      .when({ ...refuse(), ...asRegistered } as EscalationCommand)
      .thenEvents({ ...refused, by: dave });
  });
  it('gives nothing where the question names nothing that it could be measured by', () => {
    given(escalation, [{ type: 'EscalationOpened', question: vagueQuestion }])
      .when({ ...approve(), ...asRegistered } as EscalationCommand)
      .thenRefused({ code: 'wider_than_request' });
  });
  it('answers nothing that it asked itself', () => {
    for (const command of [approve(bob), refuse(bob)])
      given(escalation, [opened])
        .when({ ...command, registered: true } as EscalationCommand)
        .thenRefused({ code: 'not_the_reviewer' });
  });
});

describe('refusing an escalation', () => {
  it('is for its reviewer, and keeps the reason', () => {
    given(escalation, [opened]).when(refuse()).thenEvents(refused);
    given(escalation, [opened])
      .when(refuse(carol, 'not now'))
      .thenEvents({ ...refused, reason: 'not now' });
  });
  it('is refused to the requester, who may withdraw it', () =>
    given(escalation, [opened]).when(refuse(bob)).thenRefused({ code: 'not_the_reviewer' }));
});

describe('withdrawing an escalation', () => {
  it('is for its requester', () => given(escalation, [opened]).when(withdraw()).thenEvents(withdrawn));
  it.each([alice, carol, dave])('is refused to anybody else: %o', (by) =>
    given(escalation, [opened]).when(withdraw(by)).thenRefused({ code: 'not_the_requester' }),
  );
});

describe('the expiry of an escalation', () => {
  it('is recorded once its time is over', () => given(escalation, [opened]).when(expire('12:00:00')).thenEvents(expired));
  it('is refused before', () => given(escalation, [opened]).when(expire('11:59:59')).thenRefused({ code: 'escalation_not_expired' }));
  it('never comes where none was set', () => {
    const { expiresAt: _, ...endless } = question;
    given(escalation, [{ type: 'EscalationOpened', question: endless }])
      .when(expire('23:00:00'))
      .thenRefused({ code: 'escalation_not_expired' });
  });
});

describe('an escalation', () => {
  it.each([approve(), refuse(), withdraw(), expire('12:00:00')])('is answered by nobody before it is there: $type', (command) =>
    given(escalation, []).when(command).thenRefused({ code: 'escalation_not_found' }),
  );
  it.each([approved, narrowed, refused, expired, withdrawn])('is answered once: $type', (answered) => {
    for (const command of [approve(), refuse(), withdraw(), expire('12:00:00')])
      given(escalation, [opened, answered]).when(command).thenRefused({ code: 'escalation_answered' });
  });
  it('makes events that meet their contract', () => {
    for (const event of [opened, approved, narrowed, refused, expired, withdrawn]) expect(EscalationEvent.parse(event)).toEqual(event);
  });
  it('keeps when it was answered, by whom, and why', () => {
    const answerOf = (event: EscalationEvent) => [opened, event].reduce(escalation.evolve, escalation.initial);
    expect(answerOf({ ...refused, reason: 'not now' })).toMatchObject({ answer: { at: TEN, by: carol, reason: 'not now' } });
    expect(answerOf(approved)).toEqual({ status: 'approved', question, answer: { at: TEN, by: carol }, grant: answer() });
    expect(answerOf(expired)).toEqual({ status: 'expired', question, answer: { at: at('12:00:00.000') } });
  });
  it('cannot have been answered before it was opened', () => expect(() => escalation.evolve(escalation.initial, refused)).toThrow(Defect));
});
