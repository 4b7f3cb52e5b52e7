import { randomUUID } from 'node:crypto';
import { AuthorityClient, type Bus } from '@sharedos/bus';
import type { SharedOS } from '@sharedos/client';
import { type Address, type Result, timestampOf } from '@sharedos/contracts';
import { type ServerHandle, waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectAs } from '../support/evidence.ts';
import { ALICE, BOB, NAMESPACE, type TestSystem, startTestSystem } from '../support/test-system.ts';

const AUTHORIZERS = 3;
/** Links below the root, as many as are followed. */
const DEPTH = 16;
const BREADTH = 1_000;
const CHANGES = 500;
const AT_ONCE = 32;
const ANSWER_MS = 30_000;

// Real servers and processes on a machine that may be busy: nothing here measures time.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const RESOURCE = { namespace: 'files', path: ['cell'] };
const READ = { resource: { ...RESOURCE, owner: ALICE }, actions: ['read'], scope: 'descendants' as const };

const agent = (agentId: string): Address => ({ kind: 'agent', agentId });

/** Does something for each number below `count`, a bounded number of them at once. */
const forEach = async (count: number, task: (number: number) => Promise<void>): Promise<void> => {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
};

const codeOf = (answer: Awaited<ReturnType<SharedOS['grants']['get']>>): string => {
  if (answer.ok) return 'done';
  return answer.error.kind === 'refused' ? answer.error.error.code : answer.error.kind;
};

const surely = <T>(answer: Result<T, unknown>): T => {
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return answer.value;
};

/** Asks again for as long as nobody can tell yet, as after a start of everything. */
const answered = (ask: () => ReturnType<SharedOS['grants']['get']>) =>
  waitFor(
    'an answer',
    async () => {
      const answer = await ask();
      return answer.ok || (answer.error.kind === 'refused' && !answer.error.error.retryable) ? answer : undefined;
    },
    ANSWER_MS,
  );

describe.each(['jetstream', 'eventstoredb'] as const)('grants over three authorizers, with the log on %s', (eventStore) => {
  let system: TestSystem;
  let alice: SharedOS;
  let bob: SharedOS;
  let executor: Bus;

  beforeAll(async () => {
    system = await startTestSystem({
      eventStore,
      replicas: { authorizer: AUTHORIZERS, 'tool-executor': 0, 'messaging-router': 0, 'audit-projector': 0 },
    });
    [alice, bob] = [await system.client(ALICE), await system.client(BOB)];
    executor = await connectAs(system.stack, 'tool-executor');
  });
  afterAll(async () => {
    await executor?.close();
    await system?.stop();
  });

  const issue = (id: string, subject: Address, delegationDepth = 0) =>
    alice.grants.issue({ id, subject, capabilities: [READ], constraints: { delegationDepth } });
  const derive = (by: SharedOS, parent: string, id: string, subject: Address, delegationDepth = 0) =>
    by.grants.derive(parent, { id, subject, capabilities: [READ], constraints: { delegationDepth } });

  /** Opens a turn of an agent over alice's resources, asks to read, and tells by which grant, or why not. */
  const asks = async (actor: Address, authority: Address = ALICE): Promise<string> => {
    const client = new AuthorityClient(executor, ANSWER_MS);
    const context = {
      namespaceId: NAMESPACE,
      actor,
      authority,
      owner: ALICE,
      purpose: 'testing',
      traceId: randomUUID(),
      enabledToolNamespaces: ['files'],
      now: timestampOf(Date.now()),
    };
    const opened = surely(await client.open({ turnId: randomUUID(), context, validForMs: 60_000, auditId: randomUUID() }));
    const question = { kind: 'authorize', request: { resource: RESOURCE, action: 'read' }, consume: false } as const;
    const verdict = surely(await client.decide(opened.token, context, question, [randomUUID(), randomUUID()]));
    return verdict.status === 'allowed' ? (verdict.decision?.matchedGrantId ?? 'nothing') : verdict.code;
  };

  it('are read by whoever names the revision that their issue was answered with, from any of them', async () => {
    await forEach(40, async (number) => {
      const { revision } = surely(await issue(`written-${number}`, agent(`reader-${number}`)));
      const lists = await Promise.all(
        Array.from({ length: AUTHORIZERS }, () => alice.grants.list({ role: 'issuer', subject: agent(`reader-${number}`), revision })),
      );
      for (const list of lists) expect(surely(list).grants.map(({ id }) => id)).toEqual([`written-${number}`]);
      expect(await asks(agent(`reader-${number}`))).toBe(`written-${number}`);
    });
  });

  it('have one issuer where several want one id at once, and the others hear that it exists', async () => {
    for (let round = 0; round < 10; round += 1) {
      const racers = Array.from({ length: 8 }, (_, racer) => agent(`racer-${racer}`));
      const answers = await Promise.all(racers.map((racer) => issue(`wanted-${round}`, racer)));
      expect(answers.map(codeOf).toSorted()).toEqual(['done', ...Array.from({ length: 7 }, () => 'grant_exists')]);
      const winner = answers.findIndex(({ ok }) => ok);
      expect(surely(await alice.grants.get(`wanted-${round}`)).grant.subject).toEqual(racers[winner]);
    }
  });

  it('confer nothing when they were passed on while what they come from was revoked', async () => {
    let passedOn = 0;
    await forEach(30, async (number) => {
      surely(await issue(`root-${number}`, BOB, 1));
      const holder = agent(`raced-${number}`);
      const [derived, revoked] = await Promise.all([
        derive(bob, `root-${number}`, `below-${number}`, holder),
        alice.grants.revoke(`root-${number}`),
      ]);
      surely(revoked);
      if (derived.ok) passedOn += 1;
      else expect(codeOf(derived)).toBe('parent_inactive');
      expect(await asks(holder, BOB)).toBe(derived.ok ? 'delegation_chain_invalid' : 'no_matching_grant');
    });
    expect(passedOn).toBeGreaterThan(0);
  });

  it('are revoked by their issuer alone, and a second time without any change', async () => {
    surely(await issue('mine', agent('holder')));
    expect(codeOf(await bob.grants.revoke('mine'))).toBe('not_the_issuer');
    expect(codeOf(await alice.grants.revoke('never-issued'))).toBe('grant_not_found');
    const first = surely(await alice.grants.revoke('mine'));
    const second = surely(await alice.grants.revoke('mine'));
    expect(second.grant).toEqual(first.grant);
    expect(codeOf(await issue('mine', agent('holder')))).toBe('grant_exists');
  });

  it(`fall with their root: ${DEPTH} links deep and ${BREADTH} wide, all of it for the next turn`, async () => {
    const people = [
      { client: alice, address: ALICE },
      { client: bob, address: BOB },
    ] as const;
    const holderAt = (depth: number) => people[(depth + 1) % 2] as (typeof people)[number];
    surely(await issue('tree-0', BOB, DEPTH));
    for (let depth = 1; depth < DEPTH; depth += 1) {
      const by = holderAt(depth - 1).client;
      surely(await derive(by, `tree-${depth - 1}`, `tree-${depth}`, holderAt(depth).address, DEPTH - depth));
    }
    const last = holderAt(DEPTH - 1);
    await forEach(BREADTH, async (number) => {
      surely(await derive(last.client, `tree-${DEPTH - 1}`, `leaf-${number}`, agent(`leaf-${number}`)));
      expect(await asks(agent(`leaf-${number}`), last.address)).toBe(`leaf-${number}`);
    });
    surely(await alice.grants.revoke('tree-0'));
    await forEach(BREADTH, async (number) => expect(await asks(agent(`leaf-${number}`), last.address)).toBe('delegation_chain_invalid'));
  });

  it(`are all there after ${2 * CHANGES} acknowledged changes and the sudden end of everything`, async () => {
    await forEach(CHANGES, async (number) => {
      surely(await issue(`kept-${number}`, agent(`keeper-${number}`)));
      surely(await alice.grants.revoke(`kept-${number}`));
    });
    surely(await issue('standing', agent('standing')));
    const { stack } = system;
    const servers: ServerHandle[] = [stack.nats, stack.redis];
    if (stack.eventStore?.server.server !== undefined) servers.push(stack.eventStore.server.server);
    await Promise.all([...stack.services().map((service) => service.kill()), ...servers.map((server) => server.kill())]);
    await Promise.all(servers.map((server) => server.restart()));
    await Promise.all(Array.from({ length: AUTHORIZERS }, () => stack.startService('authorizer')));
    await vi.waitFor(() => expect(alice.connected() && executor.connected).toBe(true), { timeout: ANSWER_MS });
    await forEach(CHANGES, async (number) => {
      const { grant } = surely(await answered(() => alice.grants.get(`kept-${number}`)));
      expect(grant.revokedAt).toBeDefined();
      expect(codeOf(await answered(() => issue(`kept-${number}`, agent(`keeper-${number}`))))).toBe('grant_exists');
    });
    expect(await asks(agent('keeper-0'))).toBe('no_matching_grant');
    expect(await asks(agent('standing'))).toBe('standing');
  });
});
