import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClientError, SharedOS } from '@sharedos/client';
import type { Address, CapabilityConstraints, Result } from '@sharedos/contracts';
import { type LocalStack, waitFor } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';
import { ALICE, BOB, NAMESPACE } from '../../support/test-system.ts';
import { FREE_CELL, type PlannedTree, type PlannedTurn, type Schedule } from './schedule.ts';

export const CAROL = { kind: 'human', userId: 'carol' } as const satisfies Address;
export const OWNERS = { alice: ALICE, bob: BOB } as const satisfies Record<PlannedTurn['owner'], Address>;
export const REQUESTERS = { ...OWNERS, carol: CAROL } as const satisfies Record<PlannedTurn['from'], Address>;
export const AGENTS = {
  scout: { kind: 'agent', agentId: 'scout' },
  porter: { kind: 'agent', agentId: 'porter' },
} as const satisfies Record<PlannedTurn['agent'], Address>;

export type Client = (principal: Address) => Promise<SharedOS>;

/** The name of a grant of one owner over one cell, and of the grant that lets the porter be run. */
const cellGrant = (owner: string, cell: string): string => `${owner}-${cell}`;
const writeGrant = (owner: string): string => `${owner}-writes`;
const porterGrant = (owner: string): string => `${owner}-runs-porter`;

/** What every bounded grant of the run allows, those of the trees with all that is used below them. */
export const boundsOf = ({ cells, trees, porterUses, messages }: Schedule): ReadonlyMap<string, number> =>
  new Map([
    ...Object.keys(OWNERS).flatMap((owner) => [
      [porterGrant(owner), porterUses] as const,
      [writeGrant(owner), Math.max(1, messages)] as const,
      ...cells.map(({ cell, maxUses }) => [cellGrant(owner, cell), maxUses] as const),
    ]),
    ...trees.flatMap(({ cell, maxUses, carolUses, scoutUses }) => [
      [`${cell}-of-bob`, maxUses] as const,
      [`${cell}-of-carol`, carolUses] as const,
      [`${cell}-of-scout-by-carol`, scoutUses] as const,
    ]),
  ]);

type Place = readonly [namespace: string, ...path: string[]];
const COMMAND_DEADLINE_MS = 120_000;
const ASK_AGAIN_MS = 100;

/** Repeats one and the same command while nobody answers it, or while the setting it needs has not come everywhere. */
const done = (what: string, command: (commandId: string) => Promise<Result<unknown, ClientError>>): Promise<true> => {
  let attempt = 0;
  return waitFor(
    what,
    async () => {
      const answer = await command(`${what} ${attempt}`);
      if (answer.ok) return true;
      if (answer.error.kind === 'refused') {
        if (answer.error.error.code !== 'bounded_parent_not_delegable') throw new Error(`${what}: ${JSON.stringify(answer.error)}`);
        attempt += 1;
      }
      return pause(ASK_AGAIN_MS, false);
    },
    COMMAND_DEADLINE_MS,
  );
};

/** Grants what the turns of a schedule need, and makes the files that their effects go to. */
export const prepare = async (stack: LocalStack, client: Client, schedule: Schedule): Promise<void> => {
  for (const [name, owner] of Object.entries(OWNERS)) {
    const { grants } = await client(owner);
    const issue = (id: string, subject: Address, [namespace, ...path]: Place, action: string, constraints: CapabilityConstraints = {}) => {
      const capabilities = [{ resource: { namespace, path }, actions: [action], scope: 'descendants' as const }];
      return done(`issue ${id}`, (commandId) => grants.issue({ id, subject, capabilities, constraints }, commandId));
    };
    await issue(`${name}-runs-scout`, AGENTS.scout, RUN_SCOUT, 'invoke');
    await issue(porterGrant(name), AGENTS.porter, ['sharedos.execution', 'agent', 'porter'], 'invoke', { maxUses: schedule.porterUses });
    for (const agent of Object.values(AGENTS)) await issue(`${name}-free-${agent.agentId}`, agent, ['files', FREE_CELL], 'append');
    for (const { cell, maxUses } of schedule.cells)
      await issue(cellGrant(name, cell), AGENTS.scout, ['files', cell], 'append', { maxUses });
    await issue(writeGrant(name), owner, ['sharedos.messaging', 'human', 'alice'], 'send', { maxUses: Math.max(1, schedule.messages) });
  }
  if (schedule.trees.length > 0) await plantTrees(client, schedule.trees);
  for (const file of logFiles(stack, schedule)) {
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, '');
  }
};

const RUN_SCOUT: Place = ['sharedos.execution', 'agent', 'scout'];

/** Lets bob and carol run the scout for alice, and grants each tree from its root to its leaves. */
const plantTrees = async (client: Client, trees: readonly PlannedTree[]): Promise<void> => {
  const [alice, bob, carol] = await Promise.all([client(ALICE), client(BOB), client(CAROL)]);
  await done('share budgets', () => alice.settings.set({ sharedBudgets: true }));

  const plant = async (
    name: string,
    [namespace, ...path]: Place,
    action: string,
    { maxUses, carolUses, scoutUses }: Partial<PlannedTree> = {},
  ): Promise<void> => {
    const over = { actions: [action], scope: 'descendants' as const };
    const root = {
      id: `${name}-of-bob`,
      subject: BOB,
      capabilities: [{ resource: { namespace, path }, ...over }],
      constraints: { delegationDepth: 2, maxUses },
    };
    await done(`issue ${root.id}`, (commandId) => alice.grants.issue(root, commandId));
    const pass = (from: SharedOS, parent: string, id: string, subject: Address, constraints: CapabilityConstraints) => {
      const capabilities = [{ resource: { namespace, path, owner: ALICE }, ...over }];
      return done(`derive ${id}`, (commandId) => from.grants.derive(parent, { id, subject, capabilities, constraints }, commandId));
    };
    await pass(bob, root.id, `${name}-of-scout-by-bob`, AGENTS.scout, {});
    await pass(bob, root.id, `${name}-of-carol`, CAROL, { delegationDepth: 1, maxUses: carolUses });
    await pass(carol, `${name}-of-carol`, `${name}-of-scout-by-carol`, AGENTS.scout, { maxUses: scoutUses });
  };
  await plant('run-for-alice', RUN_SCOUT, 'invoke');
  for (const tree of trees) await plant(tree.cell, ['files', tree.cell], 'append', tree);
};

/** The file of every cell that effects can happen in. */
const logFiles = (stack: LocalStack, { cells, trees }: Schedule): readonly string[] =>
  Object.entries(OWNERS).flatMap(([name, owner]) =>
    [FREE_CELL, ...cells.map(({ cell }) => cell), ...(name === 'alice' ? trees.map(({ cell }) => cell) : [])].map((cell) =>
      join(stack.filesRoot, ...ownerFolder(NAMESPACE, owner), cell, 'log.txt'),
    ),
  );

/** The lines that the effects of the whole run left. */
export const effectsOf = async (stack: LocalStack, schedule: Schedule): Promise<readonly string[]> => {
  const texts = await Promise.all(logFiles(stack, schedule).map((file) => readFile(file, 'utf8')));
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
};
