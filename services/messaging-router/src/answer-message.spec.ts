import type { Delivery } from '@sharedos/bus';
import { type NamespaceFacts, type Result, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { answerMessage } from './answer-message.ts';
import type { Ports } from './ports.ts';

const NOON = '2026-01-01T12:00:00.000Z';
const alice = { kind: 'human', userId: 'alice' } as const;
const clerk = { kind: 'agent', agentId: 'clerk' } as const;
const delivery: Delivery = { verb: 'message.answer', namespaceId: 'w1', rest: [], signal: new AbortController().signal };
const answer = {
  executionId: 'turn-1',
  message: {
    version: '1' as const,
    id: 'm-1',
    sender: alice,
    receiver: clerk,
    purpose: 'p1',
    payload: {},
    traceId: 'trace-1',
    createdAt: NOON,
  },
  output: { text: 'done' },
  completedAt: NOON,
};

/** A router that learns this of the namespace, and has nothing to send with: what is refused here touches no other port. */
const knowing = (facts: Result<Pick<NamespaceFacts, 'agent'>, Unavailable>): Ports =>
  ({ authority: { namespace: async () => facts }, clock: () => Date.parse(NOON) }) as unknown as Ports;

describe('the answer of a turn that a message started', () => {
  it('is refused when the agent is not registered any more', async () => {
    expect(await answerMessage(knowing(ok({})))(answer, delivery)).toMatchObject({
      ok: false,
      error: { code: 'recipient_not_registered' },
    });
  });

  it('is to be sent again while nobody can say whether the agent is registered', async () => {
    expect(await answerMessage(knowing(unavailable('silence')))(answer, delivery)).toMatchObject({
      ok: false,
      error: { code: 'authority_unavailable', retryable: true },
    });
  });

  it('is an agent’s alone', async () => {
    const toSomebody = { ...answer, message: { ...answer.message, receiver: alice } };
    expect(await answerMessage(knowing(ok({})))(toSomebody, delivery)).toMatchObject({ ok: false, error: { code: 'invalid_request' } });
  });
});
