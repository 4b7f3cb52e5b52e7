import type { AgentStep, RunningAgent } from '@sharedos/client';
import type { Address, AuditEvent, Json } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, BOB, NAMESPACE, PRINCIPALS, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const CLERK = { kind: 'agent', agentId: 'clerk' } as const satisfies Address;

let system: TestSystem;
const agents: RunningAgent[] = [];

/** Clerk works for bob: it reads the file that a message names, and says what it found. Or it asks scout, where it is told to. */
const clerk = ({ turn, input, call, complete }: AgentStep) => {
  if (input.type === 'tool_result')
    return complete(input.result.status === 'succeeded' ? { found: input.result.output } : { refused: input.result.error.code });
  const asked = turn.message.payload as { readonly read?: string; readonly ask?: Address };
  if (asked.ask !== undefined) return call('messages.request', { recipient: asked.ask, payload: { read: 'plan.md' } });
  return asked.read === undefined ? complete('nothing asked') : call('files.read', { path: [asked.read] });
};

beforeAll(async () => {
  system = await startTestSystem({
    principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CLERK }],
    roots: { [NAMESPACE]: [ALICE, BOB] },
    replicas: { authorizer: 2, 'tool-executor': 2, 'messaging-router': 2 },
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_TOOL_NAMESPACES: 'files,messages,sharedos' } : {}),
  });
  await system.files(BOB, { 'plan.md': 'Buy milk' });
  await system.letAliceRunScout();
  await system.grant('scout-to-clerk', messagesTo(CLERK));
  const toClerk = { from: BOB, to: CLERK };
  await system.grant(
    'clerk-runs',
    { namespace: 'sharedos.execution', path: ['agent', 'clerk'], actions: ['invoke'], scope: 'exact' },
    toClerk,
  );
  await system.grant('clerk-reads', { path: ['plan.md'], actions: ['read'], scope: 'exact' }, toClerk);
  await system.grant('clerk-to-scout', messagesTo(SCOUT), toClerk);
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const registered = await (
    await system.client(BOB)
  ).agents.register({
    agentId: CLERK.agentId,
    authority: BOB,
    owner: BOB,
    runtime: { runtime: 'remote', config: {} },
  });
  expect(registered).toMatchObject({ ok: true, value: { agent: { status: 'active' } } });
  const running = await (await system.client(CLERK)).agent(clerk);
  if (!running.ok) throw new Error('clerk does not run');
  agents.push(running.value);
}, 2 * DEADLINE_MS);
afterAll(async () => {
  for (const agent of agents) await agent.stop();
  await system?.stop();
});

const messagesTo = (receiver: typeof CLERK | typeof SCOUT) =>
  ({ namespace: 'sharedos.messaging', path: ['agent', receiver.agentId], actions: ['send'], scope: 'exact' }) as const;
const ended = (count: number) => (records: readonly AuditEvent[]) => records.filter(({ type }) => type === 'turn.ended').length >= count;

/** Scout asks clerk within a turn of alice’s, and answers with what it heard. */
const ask = async (name: string, payload: Json): Promise<unknown> => {
  const calls = [{ tool: 'messages.request', arguments: { recipient: CLERK, payload } }];
  const { result } = await system.run({ executionId: name, traceId: `trace-${name}`, calls });
  if (result.status !== 'succeeded') throw new Error(`scout’s turn ended ${JSON.stringify(result)}`);
  return (result.output as { readonly calls?: unknown }).calls ?? result.output;
};

describe('a request to a registered agent', () => {
  it('is answered by a turn of that agent, under its own grants, in the same trace', { timeout: DEADLINE_MS }, async () => {
    expect(JSON.stringify(await ask('first', { read: 'plan.md' }))).toContain('Buy milk');
    const records = await system.records('trace-first', ended(2));
    const told = records.map(({ type, outcome, actor, authority }) => `${type} ${outcome} ${JSON.stringify([actor, authority])}`);
    // Scout asks under alice; clerk runs, reads and replies under bob.
    expect(told).toEqual(
      expect.arrayContaining([
        `message.sent succeeded ${JSON.stringify([SCOUT, ALICE])}`,
        `tool.invoked succeeded ${JSON.stringify([CLERK, BOB])}`,
        `message.sent succeeded ${JSON.stringify([CLERK, BOB])}`,
        `turn.ended succeeded ${JSON.stringify([CLERK, BOB])}`,
        `turn.ended succeeded ${JSON.stringify([SCOUT, ALICE])}`,
      ]),
    );
    // One decision and one delivery for the request.
    const sends = records.filter(
      ({ type, action, actor }) => type === 'authorization.checked' && action === 'send' && actor.kind === 'agent',
    );
    expect(sends.map(({ actor }) => actor)).toEqual(expect.arrayContaining([SCOUT, CLERK]));
    expect(JSON.stringify(records)).not.toContain('Buy milk');
  });

  it('leaves nothing of the sender’s authority to the recipient', { timeout: DEADLINE_MS }, async () => {
    await system.files(ALICE, { 'secret.md': 'alice alone' });
    await system.grant('scout-secret', { path: ['secret.md'], actions: ['read'], scope: 'exact' });
    expect(JSON.stringify(await ask('borrowed', { read: 'secret.md' }))).toContain('no_matching_grant');
  });

  it('that would come back to an agent that waits for it is refused as a loop, on record', { timeout: DEADLINE_MS }, async () => {
    const terms = { agentId: SCOUT.agentId, authority: ALICE, owner: ALICE };
    expect(await (await system.client(ALICE)).agents.register(terms)).toMatchObject({ ok: true });
    expect(JSON.stringify(await ask('loop', { ask: SCOUT }))).toContain('message_request_not_accepted');
    const records = await system.records('trace-loop', ended(2));
    expect(records.filter(({ type, outcome }) => type === 'message.sent' && outcome === 'denied')).toMatchObject([
      { actor: CLERK, receiver: SCOUT, reason: 'message_loop' },
    ]);
    expect(await (await system.client(ALICE)).agents.withdraw(SCOUT.agentId)).toMatchObject({ ok: true });
  });
});

describe('a message to a registered agent from outside a turn', () => {
  it('starts a turn as well, and its answer is in the sender’s inbox', { timeout: DEADLINE_MS }, async () => {
    const alice = await system.client(ALICE);
    await system.grant('alice-to-clerk', messagesTo(CLERK), { from: ALICE, to: ALICE });
    await system.grant(
      'clerk-to-alice',
      { namespace: 'sharedos.messaging', path: ['human', 'alice'], actions: ['send'], scope: 'exact' },
      { from: BOB, to: CLERK },
    );
    const sent = await alice.messages.send({ id: 'outside', receiver: CLERK, purpose: 'testing', payload: { read: 'plan.md' } });
    expect(sent).toMatchObject({ ok: true, value: { status: 'accepted' } });
    const { reply } = await waitFor(
      'the answer of clerk',
      async () => {
        const inbox = await alice.messages.inbox();
        const found = inbox.ok ? inbox.value.find(({ message }) => message.replyTo === 'outside') : undefined;
        return found !== undefined && { reply: found.message };
      },
      DEADLINE_MS,
    );
    expect(reply).toMatchObject({ sender: CLERK, receiver: ALICE, provenance: { parentIds: ['outside'] } });
    expect(JSON.stringify(reply.payload)).toContain('Buy milk');
  });

  it('waits in the inbox once the registration is withdrawn', { timeout: DEADLINE_MS }, async () => {
    expect(await (await system.client(BOB)).agents.withdraw(CLERK.agentId)).toMatchObject({ ok: true });
    const sent = await (await system.client(ALICE)).messages.send({ id: 'late', receiver: CLERK, purpose: 'testing', payload: {} });
    expect(sent).toMatchObject({ ok: true, value: { status: 'accepted' } });
    const inbox = await (await system.client(CLERK)).messages.inbox();
    expect(inbox).toMatchObject({ ok: true, value: [{ message: { id: 'late' } }] });
  });
});
