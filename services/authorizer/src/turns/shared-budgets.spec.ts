import type { Address, CapabilityGrant, Verdict } from '@sharedos/contracts';
import { SETTINGS_DEFAULT } from '@sharedos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type World, alice, authorizerWorld, contextAt, grantOf, issued, reading, settled, toRead } from '../authorizer.fixture.ts';
import { namespaceStream } from '../fold/namespace-events.ts';

/** A grant of a tree: who it was derived from, and how often it may be used; the first is the root. */
interface Node {
  readonly parent?: number;
  readonly maxUses?: number | undefined;
}

const holder = (node: number): Address => ({ kind: 'agent', agentId: `holder-${node}` });
const idOf = (node: number): string => `grant-${node}`;
const DEPTH = 12;

const depthOf = (tree: readonly Node[], node: number): number => {
  const { parent } = tree[node] as Node;
  return parent === undefined ? 0 : 1 + depthOf(tree, parent);
};

const grantAt = (tree: readonly Node[], node: number): CapabilityGrant => {
  const { parent, maxUses } = tree[node] as Node;
  const constraints = { delegationDepth: DEPTH - depthOf(tree, node), ...(maxUses === undefined ? {} : { maxUses }) };
  return grantOf(idOf(node), constraints, {
    subject: holder(node),
    issuer: parent === undefined ? alice : holder(parent),
    capabilities: [{ ...reading('Work'), resource: { namespace: 'files', path: ['Work'], owner: alice } }],
    ...(parent === undefined ? {} : { parentGrantId: idOf(parent) }),
  });
};

/** A world with this tree of grants in its log, and the namespace's setting as said. */
const worldWith = async (tree: readonly Node[], sharedBudgets: boolean): Promise<World> => {
  const world = await authorizerWorld();
  let event = 0;
  const append = async (stream: Parameters<World['store']['append']>[0], type: string, data: unknown): Promise<void> => {
    event += 1;
    const written = await world.store.append(stream, 0, [
      {
        eventId: `00000000-0000-4000-8000-${String(event).padStart(12, '0')}`,
        type,
        schemaVersion: 1,
        at: contextAt('2026-01-01T12:00:00.000Z').now,
        principal: alice,
        correlationId: 'test',
        data: data as never,
      },
    ]);
    if (!written.ok) throw new Error(`the log did not take ${type}`);
  };
  const settings = { type: 'SettingsSet', settings: { ...SETTINGS_DEFAULT, sharedBudgets } };
  await append(namespaceStream('settings', 'w1'), 'SettingsSet', settings);
  for (let node = 0; node < tree.length; node += 1)
    await append({ category: 'grant', namespaceId: 'w1', id: idOf(node) }, 'GrantIssued', issued(grantAt(tree, node)));
  await settled();
  return world;
};

/** The turn of one holder, opened once: every use of its grant is decided for it. */
const turnOf = async (world: World, tree: readonly Node[], node: number) => {
  const { parent } = tree[node] as Node;
  const context = contextAt('2026-01-01T12:00:00.000Z', {
    actor: holder(node),
    authority: parent === undefined ? alice : holder(parent),
    owner: alice,
  });
  const { token } = await world.opened({ context, turnId: `turn-of-${node}` });
  return (operation: string): Promise<Verdict> =>
    world.verdict(token, { kind: 'authorize', request: toRead('Work'), consume: true, operation }, context);
};

const chainOf = (tree: readonly Node[], node: number): number[] => {
  const { parent } = tree[node] as Node;
  return parent === undefined ? [node] : [node, ...chainOf(tree, parent)];
};

const trees = fc
  .array(fc.record({ parent: fc.nat(), maxUses: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }) }), {
    minLength: 2,
    maxLength: 9,
  })
  .map((nodes): Node[] => nodes.map(({ parent, maxUses }, at) => (at === 0 ? { maxUses } : { parent: parent % at, maxUses })));

describe('one budget over a tree of grants', () => {
  it('is decided as a plain count of every bounded grant on the way up would decide it', { timeout: 60_000 }, async () => {
    let exhausted = 0;
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(trees, fc.array(fc.nat(), { minLength: 1, maxLength: 25 }), async (tree, asked) => {
        const world = await worldWith(tree, true);
        const turns = await Promise.all(tree.map((_, node) => turnOf(world, tree, node)));
        const used = tree.map(() => 0);
        for (const [at, pick] of asked.entries()) {
          const node = pick % tree.length;
          const chain = chainOf(tree, node);
          const hasRoom = chain.every((above) => (used[above] as number) < (tree[above]?.maxUses ?? Infinity));
          const verdict = await turns[node]?.(`operation-${at}`);
          expect(verdict?.code).toBe(hasRoom ? 'allowed' : 'grant_exhausted');
          if (hasRoom) for (const above of chain) used[above] = (used[above] as number) + 1;
          const spent = [...(verdict?.use === undefined ? [] : [verdict.use]), ...(verdict?.above ?? [])];
          const bounded = hasRoom ? chain.filter((above) => tree[above]?.maxUses !== undefined) : [];
          expect(spent.map(({ grantId, ordinal }) => [grantId, ordinal])).toEqual(bounded.map((above) => [idOf(above), used[above]]));
          if (hasRoom) taken += bounded.length;
          else exhausted += 1;
        }
        await world.close();
      }),
      { numRuns: 60 },
    );
    expect(Math.min(exhausted, taken)).toBeGreaterThan(0);
  });

  it('gives ten of 200 calls at once through, over three levels and 20 leaves', async () => {
    const tree: Node[] = [
      { maxUses: 10 },
      ...[1, 2, 3, 4].map(() => ({ parent: 0 })),
      ...Array.from({ length: 20 }, (_, leaf) => ({ parent: 1 + (leaf % 4) })),
    ];
    const world = await worldWith(tree, true);
    const turns = await Promise.all(Array.from({ length: 20 }, (_, leaf) => turnOf(world, tree, 5 + leaf)));
    const verdicts = await Promise.all(Array.from({ length: 200 }, async (_, call) => turns[call % 20]?.(`operation-${call}`)));
    expect(verdicts.filter((verdict) => verdict?.status === 'allowed')).toHaveLength(10);
    expect(verdicts.filter((verdict) => verdict?.code === 'grant_exhausted')).toHaveLength(190);
    await world.close();
  });

  it('stays with the seed where the namespace does not share: nothing below a bounded grant is worth anything', async () => {
    const tree: Node[] = [{ maxUses: 10 }, { parent: 0 }];
    const world = await worldWith(tree, false);
    const ask = await turnOf(world, tree, 1);
    expect(await ask('operation')).toMatchObject({ status: 'denied', code: 'delegation_chain_invalid' });
    expect(await (await turnOf(world, tree, 0))('another')).toMatchObject({ status: 'allowed' });
    await world.close();
  });

  it('counts a retry once, in every budget', async () => {
    const tree: Node[] = [{ maxUses: 2 }, { parent: 0, maxUses: 2 }];
    const world = await worldWith(tree, true);
    const ask = await turnOf(world, tree, 1);
    const first = await ask('one');
    expect(await ask('one')).toMatchObject({ use: first.use, above: first.above });
    expect((await ask('two')).status).toBe('allowed');
    expect((await ask('three')).code).toBe('grant_exhausted');
    await world.close();
  });

  it('is one step of the counters for a tool call, discovery included', async () => {
    const tree: Node[] = [{ maxUses: 5 }, { parent: 0, maxUses: 3 }];
    const world = await worldWith(tree, true);
    const steps: string[] = [];
    const { usage } = world.ports;
    const { take, count } = usage;
    Object.assign(usage, {
      take: (...asked: Parameters<typeof take>) => (steps.push('take'), take(...asked)),
      count: (...asked: Parameters<typeof count>) => (steps.push('count'), count(...asked)),
    });
    const context = contextAt('2026-01-01T12:00:00.000Z', { actor: holder(1), authority: holder(0), owner: alice });
    const { token } = await world.opened({ context });
    const call = (operation: string, path: string[]) =>
      world.verdict(
        token,
        { kind: 'tool', ceiling: toRead(), exact: { requirement: toRead(...path) }, operation, operationId: operation },
        context,
      );
    expect(await call('inside', ['Work', 'notes'])).toMatchObject({ status: 'allowed', use: { ordinal: 1 }, above: [{ ordinal: 1 }] });
    expect(steps.splice(0)).toEqual(['take']);
    expect(await call('outside', ['Private'])).toMatchObject({ status: 'denied', code: 'no_matching_grant' });
    expect(steps.splice(0)).toEqual(['count']);
    await world.close();
  });
});
