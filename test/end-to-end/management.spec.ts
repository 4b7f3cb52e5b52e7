import {
  type Address,
  type PolicyDocument,
  type PrincipalRequestVerb,
  SCHEMA_HEADER,
  SUBJECT_BODIES,
  type TurnSummary,
  principalSubject,
} from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { type NatsConnection, connect, headers } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerOf, callsOf, submit, turnOf } from '../support/many-turns.ts';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;

let system: TestSystem;
const connections = new Map<Address, NatsConnection>();

beforeAll(async () => {
  // Alice is the root of the namespace; the auditor is made its operator by her.
  system = await startTestSystem();
  for (const principal of [ALICE, BOB, AUDITOR]) {
    const { user, password, inboxPrefix } = system.stack.credentials.principal(NAMESPACE, principal);
    connections.set(principal, await connect({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix }));
  }
  const leaves = Object.fromEntries(Array.from({ length: 300 }, (_, leaf) => [`tree/leaf-${leaf}`, 'Nothing to find here.\n'.repeat(40)]));
  await system.files(ALICE, { ...leaves, 'plan.md': 'Buy milk' });
  await system.letAliceRunScout();
  await system.grant('read-files', { path: [], actions: ['read', 'search'] });
  const operator = { to: AUDITOR };
  await system.grant('operate-turns', { namespace: 'sharedos.admin', path: ['turns'], actions: ['read', 'cancel'] }, operator);
  await system.grant('operate-policy', { namespace: 'sharedos.admin', path: ['policy'], actions: ['stop'] }, operator);
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, operator);
}, DEADLINE_MS * 2);
afterAll(async () => {
  for (const connection of connections.values()) await connection.close();
  await system?.stop();
});

const ask = async (
  by: Address,
  verb: PrincipalRequestVerb,
  body: object,
): Promise<{ ok: boolean; value?: never; error?: { code: string } }> => {
  const named = headers();
  named.set(SCHEMA_HEADER, SUBJECT_BODIES[verb].carries[0]?.name ?? '');
  const connection = connections.get(by) as NatsConnection;
  const reply = await connection.request(principalSubject(verb, NAMESPACE, by), JSON.stringify(body), {
    timeout: DEADLINE_MS,
    headers: named,
  });
  return reply.json();
};
const read = { tool: 'files.read', arguments: { path: ['plan.md'] } } as const;
const search = { tool: 'files.search', arguments: { path: ['tree'], query: 'a needle' } } as const;
const policyOf = (...rules: object[]) => ({ language: 'sharedos.rules/1', rules }) as PolicyDocument;

describe('managing a namespace over the wire', () => {
  it('forbids by policy what a grant allows, from the next turn on, and is open to nobody but its administrators', async () => {
    const document = policyOf({ id: 'no-plans', effect: 'forbid', namespaces: ['files'], path: ['plan.md'] });
    expect(await ask(BOB, 'policy.set', { commandId: 'c-1', document })).toMatchObject({ error: { code: 'not_an_administrator' } });
    expect(callsOf((await system.run({ calls: [read] })).result)).toMatchObject([{ status: 'succeeded' }]);
    expect(await ask(ALICE, 'policy.set', { commandId: 'c-1', document })).toMatchObject({ ok: true, value: { policy: { version: 1 } } });
    expect(callsOf((await system.run({ calls: [read] })).result)).toMatchObject([{ status: 'denied', code: 'host_policy_denied' }]);
    expect(await ask(ALICE, 'policy.set', { commandId: 'c-2', document: policyOf(), expectedVersion: 1 })).toMatchObject({ ok: true });
    expect(callsOf((await system.run({ calls: [read] })).result)).toMatchObject([{ status: 'succeeded' }]);
  });

  it('changes settings, and registers an agent that its authority agrees to', async () => {
    expect(await ask(ALICE, 'settings.set', { commandId: 's-1', settings: { turnsRunningMax: 8 } })).toMatchObject({
      value: { version: 1, settings: { turnsRunningMax: 8 } },
    });
    expect(await ask(BOB, 'settings.get', {})).toMatchObject({ error: { code: 'not_an_administrator' } });
    const terms = { agentId: 'scribe', authority: BOB, owner: ALICE };
    expect(await ask(ALICE, 'agent.register', { commandId: 'a-1', terms })).toMatchObject({ value: { agent: { status: 'proposed' } } });
    expect(await ask(BOB, 'agent.register', { commandId: 'a-1', terms })).toMatchObject({ value: { agent: { status: 'active' } } });
  });

  it('stops an agent: nothing it holds is left, its open turns are found and cancelled, and resuming revives nothing', async () => {
    const alice = await system.client(ALICE);
    const running = await submit(alice, turnOf({ executionId: 'long', calls: Array.from({ length: 500 }, () => search) }));
    await waitFor(
      'the turn to run',
      async () => {
        const turn = await alice.turns.get('long');
        return turn.ok && turn.value.summary.state === 'running';
      },
      DEADLINE_MS,
    );
    const target = { kind: 'agent', agent: SCOUT };
    expect(await ask(BOB, 'policy.stop', { commandId: 'x', target, reason: 'r' })).toMatchObject({
      error: { code: 'not_an_administrator' },
    });
    expect(await ask(AUDITOR, 'policy.stop', { commandId: 'x', target, reason: 'it does not end' })).toMatchObject({
      value: { revokedNow: 2, complete: true },
    });

    expect(await ask(BOB, 'turn.list', { requester: 'everyone', agent: SCOUT })).toMatchObject({ error: { code: 'not_an_administrator' } });
    const listed = await ask(AUDITOR, 'turn.list', { requester: 'everyone', agent: SCOUT, state: 'running' });
    expect(listed).toMatchObject({ value: { turns: [{ executionId: 'long', requester: ALICE, state: 'running', agent: SCOUT }] } });
    const { turns } = listed.value as unknown as { turns: TurnSummary[] };
    for (const { executionId, requester } of turns)
      expect(await ask(AUDITOR, 'turn.cancel', { executionId, requester })).toMatchObject({ value: { outcome: 'cancelling' } });
    expect(await answerOf(running)).toMatchObject({ status: 'cancelled' });

    expect((await system.run({ calls: [read] })).result).toMatchObject({ status: 'denied', error: { code: 'no_matching_grant' } });
    expect(await ask(ALICE, 'policy.resume', { commandId: 'y', target })).toMatchObject({ value: { policy: { stops: [] } } });
    expect((await system.run({ calls: [read] })).result).toMatchObject({ status: 'denied', error: { code: 'no_matching_grant' } });
  });
});
