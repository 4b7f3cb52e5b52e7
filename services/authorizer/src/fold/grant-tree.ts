import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import { type CapabilityGrant, type GrantTree, type Reply, TREE_DEPTH_MAX, type TreePage } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { AuthorityIndex } from './authority-index.ts';
import type { Ports } from '../ports.ts';
import { concerns, grantNotFound } from '../views/read-grants.ts';
import { atLeast } from '../turns/up-to-date.ts';

const PAGE = 100;
/** Children read at a time on the way. */
const CHILDREN = 100;

interface Node {
  /** From the grant asked for down to this one. */
  readonly way: readonly string[];
  readonly grant: CapabilityGrant;
}

/**
 * What was derived from a grant, for whoever issued it or holds it: it is their authority that was passed on. Each grant comes
 * before what was derived from it, so a page is told apart from the next by the way to its last grant.
 */
export const grantTree =
  (ports: Ports) =>
  async (
    { grantId, depth = TREE_DEPTH_MAX, limit = PAGE, after, revision: named }: GrantTree,
    { namespaceId, principal }: Delivery,
  ): Promise<Reply<TreePage>> => {
    invariant(principal !== undefined, 'grants are read by principals');
    const here = await atLeast(ports, named);
    if (!here.ok) return here;
    const { index } = ports.fold;
    const root = index.grantAt(namespaceId, grantId, Infinity, Infinity)?.grant;
    if (!concerns(root, principal)) return grantNotFound();

    const found: Node[] = [];
    for (const node of nodesAfter(index, { way: [grantId], grant: root }, depth, after)) {
      found.push(node);
      // One more than asked says that there is a next page.
      if (found.length > limit) break;
    }
    const page = withinOneAnswer(found.slice(0, limit));
    const next = page.length < found.length ? page.at(-1)?.way : undefined;
    return {
      ok: true,
      value: {
        nodes: page.map(({ way, grant }) => ({ depth: way.length - 1, grant })),
        ...(next === undefined ? {} : { next: [...next] }),
        revision: here.value.revision,
      },
    };
  };

/** The nodes of a tree in order, from after one that is named by its way; nothing after a way that is not in the tree. */
function* nodesAfter(index: AuthorityIndex, root: Node, depthMax: number, after: readonly string[] | undefined): Generator<Node> {
  if (after === undefined) yield root;
  else if (after[0] !== root.way[0]) return;
  yield* below(index, root, depthMax, after?.slice(1) ?? []);
}

/** @param onWay Ids that lead from this node to the last one that was told before. */
function* below(index: AuthorityIndex, { way, grant }: Node, depthMax: number, onWay: readonly string[]): Generator<Node> {
  if (way.length > depthMax) return;
  const { namespaceId } = grant;
  const [first, ...further] = onWay;
  if (first !== undefined) {
    const told = index.grantAt(namespaceId, first, Infinity, Infinity)?.grant;
    if (told?.parentGrantId !== grant.id) return;
    yield* below(index, { way: [...way, first], grant: told }, depthMax, further);
  }
  for (let after = first; ;) {
    const page = index.children(namespaceId, grant.id, { after, limit: CHILDREN });
    for (const child of page.grants) {
      const node = { way: [...way, child.id], grant: child };
      yield node;
      yield* below(index, node, depthMax, []);
    }
    if (page.next === undefined) return;
    after = page.next;
  }
}
