import type { OutgoingMessage } from '@sharedos/client';
import type { Address, AuditEvent, DeliveryResult, Json, MessageEnvelope } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, BOB, NAMESPACE, PRINCIPALS, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const CLERK = { kind: 'agent', agentId: 'clerk' } as const satisfies Address;
const EVE = { kind: 'agent', agentId: 'eve' } as const satisfies Address;
const SENT_AT = '2026-01-01T12:00:00Z';

let system: TestSystem;
const sendTo = (path: readonly string[]) => ({ namespace: 'sharedos.messaging', path, actions: ['send'], scope: 'exact' }) as const;

// Clerk and eve are agents that nobody registered: what they are asked is in their inboxes, and they answer as they please. Both may
// write to scout and to alice, so that nothing here is refused for want of a grant.
beforeAll(async () => {
  system = await startTestSystem({
    principals: [CLERK, EVE].map((principal) => ({ namespaceId: NAMESPACE, principal })).concat(PRINCIPALS as never),
    roots: { [NAMESPACE]: [ALICE, BOB] },
    replicas: { 'messaging-router': 2 },
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_TOOL_NAMESPACES: 'files,messages,sharedos' } : {}),
  });
  await system.letAliceRunScout();
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  await system.grant('scout-to-clerk', sendTo(['agent', 'clerk']));
  await system.grant('alice-to-clerk', sendTo(['agent', 'clerk']), { to: ALICE });
  for (const agent of [CLERK, EVE])
    for (const [kind, id] of [
      ['agent', 'scout'],
      ['human', 'alice'],
      ['human', 'bob'],
    ] as const)
      await system.grant(`${agent.agentId}-to-${id}`, sendTo([kind, id]), { from: BOB, to: agent });
}, DEADLINE_MS);
afterAll(() => system?.stop());

const receiptOf = async (from: Address, outgoing: OutgoingMessage): Promise<DeliveryResult> => {
  const sent = await (await system.client(from)).messages.send(outgoing);
  if (!sent.ok) throw new Error(JSON.stringify(sent.error));
  return sent.value;
};
const spoken = (result: DeliveryResult): string => ('error' in result ? `${result.status} ${result.error.code}` : result.status);

/** Scout asks clerk within a turn of alice’s; `reply` says what is done while it waits. */
const asking = async (name: string, reply: (request: MessageEnvelope) => Promise<unknown>, timeoutMs = DEADLINE_MS) => {
  const calls = [{ tool: 'messages.request', arguments: { recipient: CLERK, payload: { for: name } } }];
  const turn = system.run({ executionId: name, traceId: `trace-${name}`, calls, options: { timeoutMs } });
  const clerk = await system.client(CLERK);
  const { request } = await waitFor(
    'the request',
    async () => {
      const inbox = await clerk.messages.inbox();
      const found = inbox.ok ? inbox.value.find(({ message }) => message.traceId === `trace-${name}`) : undefined;
      return found !== undefined && { request: found.message };
    },
    DEADLINE_MS,
  );
  await reply(request);
  return (await turn).result;
};
const replyTo = (
  { id, sender, purpose, traceId }: MessageEnvelope,
  payload: Json,
  more: Partial<OutgoingMessage> = {},
): OutgoingMessage => ({
  receiver: sender,
  replyTo: id,
  purpose,
  traceId,
  payload,
  authority: BOB,
  ...more,
});
const heard = (result: Awaited<ReturnType<typeof asking>>): string => JSON.stringify(result);

/** Sent by alice to clerk; what stands in its inbox. */
const asked = async (id: string): Promise<MessageEnvelope> => {
  expect(spoken(await receiptOf(ALICE, { id, traceId: `trace-${id}`, receiver: CLERK, purpose: 'testing', payload: {} }))).toBe('accepted');
  return { version: '1', id, sender: ALICE, receiver: CLERK, purpose: 'testing', traceId: `trace-${id}`, payload: {}, createdAt: SENT_AT };
};
const refusals = async (traceId: string, count = 1): Promise<readonly (readonly unknown[])[]> => {
  const denied = (records: readonly AuditEvent[]) => records.filter(({ type, outcome }) => type === 'message.sent' && outcome === 'denied');
  const records = denied(await system.records(traceId, (found) => denied(found).length >= count));
  return records.map(({ actor, receiver, reason }) => [actor, receiver, reason]);
};

describe('a reply to what a turn asked', () => {
  it('goes to that turn as the answer of its call, and the first one is it', { timeout: DEADLINE_MS }, async () => {
    const result = await asking('first-wins', async (request) => {
      const replies = [];
      for (const answer of ['the first', 'the second']) replies.push(spoken(await receiptOf(CLERK, replyTo(request, { answer }))));
      // The second is kept as well, and nobody is shown it.
      expect(replies).toEqual(['accepted', 'accepted']);
    });
    expect(heard(result)).toContain('the first');
    expect(heard(result)).not.toContain('the second');
    expect(await (await system.client(SCOUT)).messages.inbox()).toEqual({ ok: true, value: [] });
  });

  it('is not stood in for by anybody else’s, however early', { timeout: DEADLINE_MS }, async () => {
    const result = await asking('not-eve', async (request) => {
      expect(spoken(await receiptOf(EVE, replyTo(request, { answer: 'eve' })))).toBe('denied invalid_message_reply');
      expect(spoken(await receiptOf(CLERK, replyTo(request, { answer: 'elsewhere' }, { traceId: 'trace-other' })))).toBe(
        'denied invalid_message_reply',
      );
      expect(spoken(await receiptOf(CLERK, replyTo(request, { answer: 'clerk' })))).toBe('accepted');
    });
    expect(heard(result)).toContain('"clerk"');
    expect(await refusals('trace-not-eve')).toEqual([[EVE, SCOUT, 'invalid_message_reply']]);
  });

  it(
    'that does not come ends the turn by its own time, typed, and one that comes later reaches nobody',
    { timeout: DEADLINE_MS },
    async () => {
      let request: MessageEnvelope | undefined;
      const result = await asking('late', async (asked) => void (request = asked), 3_000);
      expect(result).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled' } });
      expect(spoken(await receiptOf(CLERK, replyTo(request as MessageEnvelope, { answer: 'late' })))).toBe('accepted');
      expect(await (await system.client(SCOUT)).messages.inbox()).toEqual({ ok: true, value: [] });
    },
  );
});

describe('a message is refused, on record and under a code of its own', () => {
  it.each<[string, (request: MessageEnvelope) => [from: Address, reply: OutgoingMessage], string, Address, Address]>([
    ['a reply from a stranger', (request) => [EVE, replyTo(request, {})], 'invalid_message_reply', EVE, ALICE],
    ['a reply to another’s request', (request) => [CLERK, replyTo(request, {}, { receiver: BOB })], 'invalid_message_reply', CLERK, BOB],
    ['a reply for another purpose', (request) => [CLERK, replyTo(request, {}, { purpose: 'else' })], 'invalid_message_reply', CLERK, ALICE],
  ])('%s', { timeout: DEADLINE_MS }, async (name, made, code, from, to) => {
    const request = await asked(name.replaceAll(/[^a-z]/g, '-'));
    const [sender, reply] = made(request);
    expect(spoken(await receiptOf(sender, reply))).toBe(`denied ${code}`);
    expect(await refusals(request.traceId)).toEqual([[from, to, code]]);
  });

  it('a reply to what nobody asked', async () => {
    const request = { ...(await asked('asked-once')), id: 'never-asked', traceId: 'trace-never-asked' };
    expect(spoken(await receiptOf(CLERK, replyTo(request, {})))).toBe('denied invalid_message_reply');
    expect(await refusals(request.traceId)).toEqual([[CLERK, ALICE, 'invalid_message_reply']]);
  });

  it('a forged sender', async () => {
    const forged = {
      id: 'forged',
      traceId: 'trace-forged',
      sender: CLERK,
      receiver: ALICE,
      purpose: 'testing',
      payload: {},
      authority: BOB,
    };
    const sent = await (await system.client(EVE)).messages.send(forged);
    expect(sent).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'identity_mismatch' } } });
    expect(await refusals('trace-forged')).toEqual([[EVE, ALICE, 'identity_mismatch']]);
  });

  it('a replayed envelope: the same is answered as it was and delivered once, another under its id is not', async () => {
    const letter = { id: 'letter', traceId: 'trace-letter', receiver: CLERK, purpose: 'testing', payload: { n: 1 }, createdAt: SENT_AT };
    const receipt = await receiptOf(ALICE, letter);
    expect(await receiptOf(ALICE, letter)).toEqual(receipt);
    expect(spoken(await receiptOf(ALICE, { ...letter, payload: { n: 2 } }))).toBe('denied replay_conflict');
    const inbox = await (await system.client(CLERK)).messages.inbox();
    expect(inbox.ok && inbox.value.filter(({ message }) => message.id === 'letter').map(({ message }) => message.payload)).toEqual([
      { n: 1 },
    ]);
    expect(await refusals('trace-letter')).toEqual([[ALICE, CLERK, 'replay_conflict']]);
  });

  it('a reply replayed by somebody else under its own name', async () => {
    const request = await asked('replayed');
    const reply = replyTo(request, { answer: 1 }, { id: 'reply-1', createdAt: SENT_AT });
    expect(spoken(await receiptOf(CLERK, reply))).toBe('accepted');
    expect(spoken(await receiptOf(EVE, reply))).toBe('denied invalid_message_reply');
    expect(await refusals(request.traceId)).toEqual([[EVE, ALICE, 'invalid_message_reply']]);
  });

  it('a loop of two agents, each of which would wait for the other', { timeout: DEADLINE_MS }, async () => {
    const runs = { namespace: 'sharedos.execution', path: ['agent', 'clerk'], actions: ['invoke'], scope: 'exact' } as const;
    await system.grant('clerk-runs', runs, { from: BOB, to: CLERK });
    const registered = await Promise.all([
      (await system.client(ALICE)).agents.register({ agentId: 'scout', authority: ALICE, owner: ALICE }),
      (await system.client(BOB)).agents.register({
        agentId: 'clerk',
        authority: BOB,
        owner: BOB,
        runtime: { runtime: 'remote', config: {} },
      }),
    ]);
    expect(registered).toMatchObject([{ ok: true }, { ok: true }]);
    const running = await (
      await system.client(CLERK)
    ).agent(({ input, call, complete }) =>
      input.type === 'tool_result' ? complete({ got: input.result.status }) : call('messages.request', { recipient: SCOUT, payload: {} }),
    );
    if (!running.ok) throw new Error('clerk does not run');
    try {
      const calls = [{ tool: 'messages.request', arguments: { recipient: CLERK, payload: {} } }];
      const { result } = await system.run({ executionId: 'loop', traceId: 'trace-loop', calls });
      expect(JSON.stringify(result)).toContain('"got":"failed"');
      expect(await refusals('trace-loop')).toEqual([[CLERK, SCOUT, 'message_loop']]);
    } finally {
      await running.value.stop();
    }
  });
});
