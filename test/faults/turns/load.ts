import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CLIENT_CODES, type SharedOS, newTurn } from '@sharedos/client';
import type { Address, CapabilityConstraints, TurnRequest } from '@sharedos/contracts';
import { type LocalStack, waitFor } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';
import { ALICE, BOB, NAMESPACE } from '../../support/test-system.ts';
import { FREE_CELL, type PlannedTurn, type Schedule } from './schedule.ts';

export const OWNERS = { alice: ALICE, bob: BOB } as const satisfies Record<PlannedTurn['from'], Address>;
const AGENTS = { scout: { kind: 'agent', agentId: 'scout' }, porter: { kind: 'agent', agentId: 'porter' } } as const;

const QUEUED_DEADLINE_MS = 120_000;
const IN_FLIGHT_EACH = 8;

/** The name of a grant of one owner over one cell, and of the grant that lets the porter be run. */
export const cellGrant = (owner: string, cell: string): string => `${owner}-${cell}`;
export const writeGrant = (owner: string): string => `${owner}-writes`;
export const porterGrant = (owner: string): string => `${owner}-runs-porter`;

/** The one line that an effect leaves: the name of its operation. */
export const lineOf = (executionId: string, callId: string): string => `${executionId}/${callId}`;
export const callIdOf = (index: number): string => `call-${index + 1}`;

/** What every bounded grant of the run allows. */
export const boundsOf = ({ cells, porterUses, messages }: Schedule): ReadonlyMap<string, number> =>
  new Map(
    Object.keys(OWNERS).flatMap((owner) => [
      [porterGrant(owner), porterUses] as const,
      [writeGrant(owner), Math.max(1, messages)] as const,
      ...cells.map(({ cell, maxUses }) => [cellGrant(owner, cell), maxUses] as const),
    ]),
  );

/** Grants what the turns of a schedule need, and makes the files that their effects go to. */
export const prepare = async (stack: LocalStack, client: (owner: Address) => Promise<SharedOS>, schedule: Schedule): Promise<void> => {
  for (const [name, owner] of Object.entries(OWNERS)) {
    const { grants } = await client(owner);
    const issue = async (
      id: string,
      agent: Address,
      [namespace, ...path]: readonly [string, ...string[]],
      action: string,
      constraints: CapabilityConstraints = {},
    ): Promise<void> => {
      const capability = { resource: { namespace, path }, actions: [action], scope: 'descendants' as const };
      const issued = await grants.issue({ id, subject: agent, capabilities: [capability], constraints });
      if (!issued.ok) throw new Error(`the grant ${id} was not issued: ${JSON.stringify(issued.error)}`);
    };
    await issue(`${name}-runs-scout`, AGENTS.scout, ['sharedos.execution', 'agent', 'scout'], 'invoke');
    await issue(porterGrant(name), AGENTS.porter, ['sharedos.execution', 'agent', 'porter'], 'invoke', { maxUses: schedule.porterUses });
    for (const agent of Object.values(AGENTS)) await issue(`${name}-free-${agent.agentId}`, agent, ['files', FREE_CELL], 'append');
    for (const { cell, maxUses } of schedule.cells)
      await issue(cellGrant(name, cell), AGENTS.scout, ['files', cell], 'append', { maxUses });
    await issue(writeGrant(name), owner, ['sharedos.messaging', 'human', 'alice'], 'send', { maxUses: Math.max(1, schedule.messages) });

    const folder = join(stack.filesRoot, ...ownerFolder(NAMESPACE, owner));
    for (const cell of [FREE_CELL, ...schedule.cells.map((planned) => planned.cell)]) {
      await mkdir(join(folder, cell), { recursive: true });
      await writeFile(join(folder, cell, 'log.txt'), '');
    }
  }
};

/** The lines that the effects of the whole run left. */
export const effectsOf = async (stack: LocalStack, schedule: Schedule): Promise<readonly string[]> => {
  const lines: string[] = [];
  for (const owner of Object.values(OWNERS)) {
    for (const cell of [FREE_CELL, ...schedule.cells.map((planned) => planned.cell)]) {
      const text = await readFile(join(stack.filesRoot, ...ownerFolder(NAMESPACE, owner), cell, 'log.txt'), 'utf8');
      lines.push(...text.split('\n').filter((line) => line !== ''));
    }
  }
  return lines;
};

const requestOf = ({ executionId, from, agent, cells }: PlannedTurn, at: string): TurnRequest =>
  newTurn({
    from: OWNERS[from],
    agent: AGENTS[agent],
    purpose: 'weathering',
    executionId,
    at,
    traceId: executionId,
    calls: cells.map((cell, index) => ({
      tool: 'files.append',
      arguments: { path: [cell, 'log.txt'], content: `${lineOf(executionId, callIdOf(index))}\n` },
    })),
  });

/**
 * Sends every turn of the schedule, a bounded number at once, and again those that say so.
 *
 * @returns The execution ids that the queue holds or held: those have a right to one answer.
 */
export const sendTurns = async (
  client: (owner: Address) => Promise<SharedOS>,
  { turns }: Schedule,
  onSent: () => void,
): Promise<readonly PlannedTurn[]> => {
  const accepted: PlannedTurn[] = [];
  const lanes = Object.keys(OWNERS).flatMap((owner) => {
    const own = turns.filter(({ from }) => from === owner);
    return Array.from({ length: IN_FLIGHT_EACH }, async (_, lane) => {
      const { turns: queue } = await client(OWNERS[owner as keyof typeof OWNERS]);
      for (const turn of own.filter((__, index) => index % IN_FLIGHT_EACH === lane)) {
        const request = requestOf(turn, new Date().toISOString());
        const sent = await queued(queue, request);
        if (turn.again) await (await queued(queue, request)).stop();
        accepted.push(turn);
        await sent.result;
        await sent.stop();
        onSent();
      }
    });
  });
  await Promise.all(lanes);
  return accepted;
};

/** A request that nobody acknowledged may be queued all the same: the same one is sent until somebody has. */
const queued = (queue: SharedOS['turns'], request: TurnRequest) =>
  waitFor(
    `the queue to take ${request.executionId}`,
    async () => {
      const submitted = await queue.submit(request, { resultTimeoutMs: RESULT_MS });
      if (submitted.ok) return submitted.value;
      const { error } = submitted;
      if (error.kind === 'unavailable' || error.error.code === CLIENT_CODES.queueFull) return undefined;
      throw new Error(`the turn was refused: ${JSON.stringify(error)}`);
    },
    QUEUED_DEADLINE_MS,
  );

/** An answer that does not come by then is looked for in the streams at the end. */
const RESULT_MS = 20_000;

const MESSAGE_DEADLINE_MS = 150_000;
const ASK_AGAIN_MS = 500;

/** Sends messages from bob to alice, each until it is known what became of it. @returns Their ids. */
export const sendMessages = async (client: (owner: Address) => Promise<SharedOS>, { messages }: Schedule): Promise<readonly string[]> => {
  const { messages: outbox } = await client(BOB);
  const ids = Array.from({ length: messages }, (_, index) => `message-${index}`);
  for (const id of ids) {
    const message = { id, receiver: ALICE, purpose: 'weathering', payload: id, traceId: id, createdAt: new Date().toISOString() };
    await waitFor(
      `an answer to ${id}`,
      async () => {
        const sent = await outbox.send(message);
        const isKnown = sent.ok && !(sent.value.status === 'failed' && sent.value.error.code === 'replay_pending');
        if (!isKnown) await pause(ASK_AGAIN_MS);
        return isKnown;
      },
      MESSAGE_DEADLINE_MS,
    );
  }
  return ids;
};
