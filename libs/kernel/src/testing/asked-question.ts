import type { CapabilityRequest, EscalationQuestion } from '@sharedos/contracts';
import { alice, at, bob, capability, carol } from './base-world.ts';

/** What bob would need of alice. */
export const requestedAuthority: CapabilityRequest = {
  id: 'ask-1',
  namespaceId: 'w1',
  requester: bob,
  owner: alice,
  requestedAt: at('09:00:00'),
  capabilities: [capability(['Work', 'Plan'], { owner: alice, actions: ['read', 'write'] })],
  purpose: 'p1',
};

/** Bob asks for it; carol is asked, in the place of alice. */
export const question: EscalationQuestion = {
  id: 'ask-1',
  requester: bob,
  owner: alice,
  authority: alice,
  reviewer: carol,
  purpose: 'p1',
  reason: 'the plan has to be changed',
  traceId: 'trace-1',
  requestedAuthority,
  requestedAt: at('09:00:00'),
  expiresAt: at('12:00:00'),
};

const { requestedAuthority: _, ...vague } = question;
/** The same, and it names nothing. */
export const vagueQuestion: EscalationQuestion = vague;
