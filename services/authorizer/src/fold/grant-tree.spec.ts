import { type Address, type CapabilityGrant, type GrantEvent, type GrantTree, type TreePage, instantOf } from '@sharedos/contracts';
import { decideWith } from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { NAMESPACE, NOON, alice, authorizerWorld, bob, carol, contextAt, grantOf, issued, revoked, toRead } from '../authorizer.fixture.ts';
import { grantTree } from './grant-tree.ts';

type World = Awaited<ReturnType<typeof authorizerWorld>>;
const noon = instantOf(NOON) ?? NaN;

/** Folds grants at the next positions of the log that follow what is folded. */
const folding = (world: World) => {
  let position = 0;
  return (event: GrantEvent) => {
    position += 1;
    world.fold.index.apply(NAMESPACE, event, noon, position);
    world.fold.reached(position);
    return position;
  };
};
const derived = (id: string, parentGrantId: string, more: Partial<CapabilityGrant> = {}) =>
  issued(grantOf(id, { delegationDepth: 20 }, { parentGrantId, subject: carol, issuer: bob, ...more }));

/** root → a → (c, d), root → b → e; bob holds the root, and issued the rest. */
const family = async () => {
  const world = await authorizerWorld();
  const fold = folding(world);
  fold(issued(grantOf('root', { delegationDepth: 20 })));
  for (const [id, parent] of [
    ['b', 'root'],
    ['a', 'root'],
    ['d', 'a'],
    ['c', 'a'],
    ['e', 'b'],
  ] as const)
    fold(derived(id, parent));
  const tree = grantTree(world.ports);
  const ask = (body: Omit<GrantTree, 'revision'>, principal = alice as Parameters<World['delivery']>[1]) =>
    tree({ ...body, revision: 'log@6' as never }, world.delivery('grant.tree', principal));
  return { world, fold, ask };
};
const shown = (page: TreePage): readonly string[] => page.nodes.map(({ depth, grant }) => `${'-'.repeat(depth)}${grant.id}`);
const page = async (asking: ReturnType<ReturnType<typeof grantTree>>): Promise<TreePage> => {
  const answer = await asking;
  if (!answer.ok) throw new Error(`refused: ${answer.error.code}`);
  return answer.value;
};

describe('the tree of a grant', () => {
  it('shows each grant before what was derived from it, in the order of the log', async () => {
    const { ask } = await family();
    expect(shown(await page(ask({ grantId: 'root' })))).toEqual(['root', '-b', '--e', '-a', '--d', '--c']);
    expect(shown(await page(ask({ grantId: 'root', depth: 1 })))).toEqual(['root', '-b', '-a']);
    expect(shown(await page(ask({ grantId: 'root', depth: 0 })))).toEqual(['root']);
  });

  it.each([1, 2, 3, 4, 5])('is the same in pages of %i', async (limit) => {
    const { ask } = await family();
    const all: string[] = [];
    let after: readonly string[] | undefined;
    do {
      const answer: TreePage = await page(ask({ grantId: 'root', limit, ...(after === undefined ? {} : { after: [...after] }) }));
      expect(answer.nodes.length).toBeLessThanOrEqual(limit);
      all.push(...shown(answer));
      after = answer.next;
    } while (after !== undefined);
    expect(all).toEqual(['root', '-b', '--e', '-a', '--d', '--c']);
  });

  it('is shown to whoever issued or holds its root, and to nobody else', async () => {
    const { ask } = await family();
    expect(await ask({ grantId: 'root' }, bob)).toMatchObject({ ok: true });
    expect(await ask({ grantId: 'a' }, carol)).toMatchObject({ ok: true, value: { nodes: [{ grant: { id: 'a' } }, {}, {}] } });
    expect(await ask({ grantId: 'root' }, carol)).toMatchObject({ ok: false, error: { code: 'grant_not_found' } });
    expect(await ask({ grantId: 'nothing' })).toMatchObject({ ok: false, error: { code: 'grant_not_found' } });
  });

  it('has nothing after a way that is not in it', async () => {
    const { ask } = await family();
    for (const after of [['a'], ['root', 'e'], ['root', 'a', 'e'], ['root', 'nothing']])
      expect(await page(ask({ grantId: 'root', after }))).toMatchObject({ nodes: [] });
  });

  it('shows what is revoked as revoked', async () => {
    const { ask, fold } = await family();
    fold(revoked('a'));
    const { nodes } = await page(ask({ grantId: 'root' }));
    expect(nodes.filter(({ grant }) => grant.revokedAt !== undefined).map(({ grant }) => grant.id)).toEqual(['a']);
  });
});

describe('a tree sixteen deep and a thousand wide', () => {
  const DEPTH = 16;
  const BREADTH = 1_000;
  const agent = (number: number) => ({ kind: 'agent', agentId: `link-${number}` }) as const;

  /** `root`, held by the first agent, passed on from one to the next; the last of them passed it on to a thousand. */
  const deep = async () => {
    const world = await authorizerWorld({ deadlineMs: 10_000 });
    const fold = folding(world);
    const capability = { resource: { namespace: 'files', path: ['Work'], owner: alice }, actions: ['read'], scope: 'descendants' } as const;
    const grant = (id: string, depth: number, more: Partial<CapabilityGrant>) =>
      issued(
        grantOf(
          id,
          { delegationDepth: DEPTH - depth },
          { capabilities: [{ ...capability, actions: ['read'], resource: { ...capability.resource, path: ['Work'] } }], ...more },
        ),
      );
    fold(grant('root', 0, { subject: agent(0) }));
    for (let depth = 1; depth < DEPTH; depth += 1)
      fold(
        grant(`link-${depth}`, depth, {
          subject: agent(depth),
          issuer: agent(depth - 1),
          parentGrantId: depth === 1 ? 'root' : `link-${depth - 1}`,
        }),
      );
    for (let leaf = 0; leaf < BREADTH; leaf += 1)
      fold(
        grant(`leaf-${leaf}`, DEPTH, {
          subject: { kind: 'agent', agentId: `leaf-${leaf}` },
          issuer: agent(DEPTH - 1),
          parentGrantId: `link-${DEPTH - 1}`,
        }),
      );
    /** Rows looked at and ancestors asked for by a fresh turn of one holder, and what its call was answered. */
    const decidedBy = async (actor: Address, authority: Address) => {
      const position = world.fold.position;
      const [steps, read] = [world.fold.index.steps, world.fold.index.grantsRead];
      const context = contextAt(NOON, { actor, authority });
      const turn = world.turns.frozen(`log@${position}` as never, position, noon, context);
      if (!turn.authority.ok) throw new Error('no authority');
      const rule = turn.authority.value.decide(toRead('Work', 'x'), { now: noon, consume: false, mode: 'execute' });
      const { decision } = await decideWith(rule, world.turns.ancestorsAt(position, noon));
      return { code: decision.reasonCode, cost: world.fold.index.steps - steps + (world.fold.index.grantsRead - read) };
    };
    return { world, fold, decidedBy, leaf: (number: number) => ({ kind: 'agent', agentId: `leaf-${number}` }) as const };
  };

  it('is all refused at the next turn once its root is revoked', async () => {
    const { fold, decidedBy, leaf } = await deep();
    for (const number of [0, 499, 999]) expect((await decidedBy(leaf(number), agent(DEPTH - 1))).code).toBe('allowed');
    fold(revoked('root'));
    const codes = new Set<string>();
    for (let number = 0; number < BREADTH; number += 1) codes.add((await decidedBy(leaf(number), agent(DEPTH - 1))).code);
    for (let depth = 1; depth < DEPTH; depth += 1) codes.add((await decidedBy(agent(depth), agent(depth - 1))).code);
    expect([...codes]).toEqual(['delegation_chain_invalid']);
    expect((await decidedBy(agent(0), alice)).code).toBe('no_matching_grant');
  });

  it('costs a decision on its root the same as on a grant that nothing was derived from', async () => {
    const { fold, decidedBy, leaf } = await deep();
    const lone = { kind: 'agent', agentId: 'lone' } as const;
    fold(issued(grantOf('lone', {}, { subject: lone })));
    const [ofRoot, ofLone] = [await decidedBy(agent(0), alice), await decidedBy(lone, alice)];
    expect(ofRoot).toEqual(ofLone);
    const ofLeaf = await decidedBy(leaf(1), agent(DEPTH - 1));
    // A leaf reads its sixteen ancestors, and none of its thousand neighbours.
    expect(ofLeaf.cost).toBe(ofLone.cost + DEPTH);
  });

  it('is told in pages, whole', async () => {
    const { world } = await deep();
    const tree = grantTree(world.ports);
    let count = 0;
    let after: string[] | undefined;
    do {
      const asked = { grantId: 'root', limit: 300, revision: 'log@1016' as never, ...(after === undefined ? {} : { after }) };
      const answer = await page(tree(asked, world.delivery('grant.tree', alice)));
      count += answer.nodes.length;
      after = answer.next;
    } while (after !== undefined);
    expect(count).toBe(DEPTH + BREADTH);
  });
});
