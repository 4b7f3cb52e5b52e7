import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { AccessContext, CapabilityGrant } from '@sharedos/contracts';
import { timestampOf } from '@sharedos/contracts';
import { CompiledAuthority, decideSync, holdAuthority } from '@sharedos/kernel';
import { AuthorityIndex } from '../../services/authorizer/src/fold/authority-index.ts';
import { readSnapshot, writeSnapshot } from '../../services/authorizer/src/fold/snapshot-file.ts';
import { HOLDER, NAMESPACE, NOW, OWNER, folded, grantOf } from './grants-world.ts';
import type { RowSpec } from './rows.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const bytesUsed = (): number => {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

/** The fold of very many grants, beside that of a tenth: time, memory, a snapshot of it, and a start from that. */
export const foldRows = async (grants: number, runs: number, say: (line: string) => void): Promise<readonly RowSpec[]> => {
  const few = grants / 10;
  const figures = {
    seconds: [] as number[],
    processor: [] as number[],
    bytes: [] as number[],
    few: [] as number[],
    keep: [] as number[],
    start: [] as number[],
    file: [] as number[],
  };
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-bench-'));
  try {
    for (let run = 1; run <= runs; run += 1) {
      say(`folding ${few} and ${grants} grants, ${run} of ${runs} …`);
      figures.few.push(folded(few).processor);
      const before = bytesUsed();
      const { index, seconds, processor } = folded(grants);
      figures.seconds.push(seconds);
      figures.processor.push(processor);
      figures.bytes.push((bytesUsed() - before) / grants);
      const place = { path: join(folder, 'authority.snapshot'), storeId: 'bench', secret: 'the secret of a bench that nobody needs' };
      figures.keep.push(await secondsOf(() => writeSnapshot(place, grants, index.snapshot())));
      figures.file.push((await stat(place.path)).size / grants);
      figures.start.push(
        await secondsOf(async () => {
          const snapshot = await readSnapshot(place);
          if (!snapshot.ok || snapshot.value === undefined) throw new Error('the snapshot cannot be used');
          if (AuthorityIndex.restore(snapshot.value.sections).size !== grants) throw new Error('the snapshot is not whole');
        }),
      );
    }
  } finally {
    await rm(folder, { recursive: true });
  }
  const each = (seconds: readonly number[], of: number): readonly number[] => seconds.map((all) => (all / of) * 1_000_000);
  const params = { grants };
  return [
    { name: 'fold', params, unit: 's', values: figures.seconds, target: 15 * (grants / 1_000_000) },
    {
      name: 'fold, processor time of one',
      params,
      unit: 'µs',
      values: each(figures.processor, grants),
      floors: each(figures.few, few),
      target: 1.5,
    },
    { name: 'memory of one', params, unit: 'B', values: figures.bytes, target: 500 },
    { name: 'snapshot, kept', params, unit: 's', values: figures.keep },
    { name: 'snapshot, of one', params, unit: 'B', values: figures.file },
    { name: 'start from a snapshot', params, unit: 's', values: figures.start, target: 2 * (grants / 1_000_000) },
  ];
};

const secondsOf = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1_000;
};

/** What one opening reads of the index, where the holder has what is named here, and what one decision on it takes. */
export const heldRows = (runs: number, say: (line: string) => void): readonly RowSpec[] => {
  say('reading what holders have …');
  const many = (count: number, prefix: string, more: Partial<CapabilityGrant> = {}) =>
    Array.from({ length: count }, (_, number) => grantOf(`${prefix}-${number}`, more));
  const over = { constraints: { expiresAt: timestampOf(NOW - 500) } };
  const worlds = {
    'live 1': [many(1, 'live'), 0],
    'live 256': [many(256, 'live'), 0],
    'live 256, ended 10000': [[...many(5_000, 'expired', over), ...many(5_000, 'revoked'), ...many(256, 'live')], 5_000],
    'live 100000': [many(100_000, 'live'), 0],
  } as const;
  const indexes = Object.entries(worlds).map(([what, [grants, revocations]]) => {
    const index = new AuthorityIndex();
    grants.forEach((grant, number) => void index.apply(NAMESPACE, { type: 'GrantIssued', grant }, NOW, number + 1));
    for (let number = 0; number < revocations; number += 1)
      index.apply(
        NAMESPACE,
        { type: 'GrantRevoked', grantId: `revoked-${number}`, revokedAt: timestampOf(NOW - 1) },
        NOW,
        grants.length + number + 1,
      );
    return { what, index, grants: grants.length };
  });
  const rounds = Array.from({ length: runs }, () =>
    indexes.map(({ index, grants }) => {
      const last = index.apply.bind(index);
      // A change of the holder: the list has to be made anew.
      const anew = timeOf(grants > 1_000 ? 3 : 50, (turn) => {
        last(NAMESPACE, { type: 'GrantIssued', grant: grantOf(`new-${performance.now()}-${turn}`, over) }, NOW, 1_000_000 + turn);
        index.heldAt(NAMESPACE, HOLDER, OWNER, Infinity, NOW);
      });
      const again = timeOf(200, () => void index.heldAt(NAMESPACE, HOLDER, OWNER, Infinity, NOW));
      return { anew, again, decide: decisionOn(index) };
    }),
  );
  const figure = (place: number, of: 'anew' | 'again' | 'decide'): readonly number[] => rounds.map((round) => round[place]?.[of] ?? NaN);
  const LIVE_256 = 1;
  return indexes.flatMap(({ what }, place): RowSpec[] => [
    { name: 'held, after a change', params: { held: what }, unit: 'µs', values: figure(place, 'anew') },
    { name: 'held, unchanged', params: { held: what }, unit: 'µs', values: figure(place, 'again') },
    { name: 'decision', params: { held: what }, unit: 'µs', values: figure(place, 'decide'), floors: figure(LIVE_256, 'decide') },
  ]);
};

const timeOf = (times: number, work: (turn: number) => void): number => {
  work(0);
  const begun = performance.now();
  for (let turn = 1; turn <= times; turn += 1) work(turn);
  return ((performance.now() - begun) * 1_000) / times;
};

const CONTEXT: AccessContext = {
  namespaceId: NAMESPACE,
  actor: HOLDER,
  authority: OWNER,
  owner: OWNER,
  purpose: 'weekly review',
  traceId: 'bench',
  enabledToolNamespaces: [],
  now: timestampOf(NOW),
};

/** One decision on an authority that is held and compiled: after its first, which makes it ready. */
const decisionOn = (index: AuthorityIndex): number => {
  const held = holdAuthority(CONTEXT, index.heldAt(NAMESPACE, HOLDER, OWNER, Infinity, NOW), { grantLimit: Infinity });
  if (!held.ok) throw new Error(`authority cannot be held: ${held.error.code}`);
  const authority = new CompiledAuthority(held.value, { ancestorsPinned: true });
  const [first] = held.value.grants;
  const resource = { namespace: 'files', path: [...(first?.grant.capabilities[0]?.resource.path ?? [])], owner: OWNER };
  const options = { now: NOW, consume: false, mode: 'execute' } as const;
  return timeOf(5_000, () => {
    if (!decideSync(authority.decide({ resource, action: 'read' }, options), {}).decision.allowed)
      throw new Error('a decision did not allow');
  });
};

/** A decision of a leaf, sixteen links from its root: beside a thousand others, and alone. */
export const treeRows = (runs: number): readonly RowSpec[] => {
  const DEPTH = 16;
  const agent = (name: string | number) => ({ kind: 'agent', agentId: `link-${name}` }) as const;
  const treeOf = (breadth: number): AuthorityIndex => {
    const index = new AuthorityIndex();
    let position = 0;
    const add = (grant: CapabilityGrant): void => void index.apply(NAMESPACE, { type: 'GrantIssued', grant }, NOW, (position += 1));
    add(grantOf('0', { subject: agent(0), constraints: { delegationDepth: DEPTH } }));
    for (let depth = 1; depth < DEPTH; depth += 1)
      add(
        grantOf(`${depth}`, {
          subject: agent(depth),
          issuer: agent(depth - 1),
          parentGrantId: `${depth - 1}`,
          constraints: { delegationDepth: DEPTH - depth },
        }),
      );
    for (let leaf = 0; leaf < breadth; leaf += 1)
      add(grantOf(`leaf-${leaf}`, { subject: agent(`leaf-${leaf}`), issuer: agent(DEPTH - 1), parentGrantId: `${DEPTH - 1}` }));
    return index;
  };
  const first = (index: AuthorityIndex) => (): void => {
    const context = { ...CONTEXT, actor: agent('leaf-0'), authority: agent(DEPTH - 1) };
    const held = holdAuthority(context, index.heldAt(NAMESPACE, context.actor, context.authority, Infinity, NOW));
    if (!held.ok) throw new Error('authority cannot be held');
    const [grant] = held.value.grants;
    const resource = { namespace: 'files', path: [...(grant?.grant.capabilities[0]?.resource.path ?? [])], owner: OWNER };
    const rule = new CompiledAuthority(held.value, { ancestorsPinned: true }).decide(
      { resource, action: 'read' },
      { now: NOW, consume: false, mode: 'execute' },
    );
    const ancestor = ({ namespaceId, grantId }: { readonly namespaceId: string; readonly grantId: string }) => {
      const found = index.grantAt(namespaceId, grantId, Infinity, NOW);
      return found === undefined ? ('not_found' as const) : { found };
    };
    if (!decideSync(rule, { ancestor }).decision.allowed) throw new Error('a decision did not allow');
  };
  const [alone, among] = [treeOf(1), treeOf(1_000)];
  const values: number[] = [];
  const floors: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    floors.push(timeOf(100, first(alone)));
    values.push(timeOf(100, first(among)));
  }
  return [
    { name: 'first decision of a turn, of a leaf', params: { depth: DEPTH, breadth: 1_000 }, unit: 'µs', values, floors, target: 1.2 },
  ];
};
