import { setTimeout as pause } from 'node:timers/promises';
import { CLIENT_CODES, type SharedOS, newTurn } from '@sharedos/client';
import type { TurnRequest } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { ALICE, BOB } from '../../support/test-system.ts';
import type { PlannedTurn, Schedule } from './schedule.ts';
import { AGENTS, type Client, OWNERS, REQUESTERS } from './world.ts';

/** The one line that an effect leaves: the name of its operation. */
export const lineOf = (executionId: string, callId: string): string => `${executionId}/${callId}`;
export const callIdOf = (index: number): string => `call-${index + 1}`;

/** What was sent so far. */
export interface Sent {
  /** Turns that the queue holds or held: those have a right to one answer. */
  readonly turns: PlannedTurn[];
  /** Turns whose requester waits no more. */
  over: number;
  /** Messages of which it is known what became of them. */
  readonly messages: string[];
}

const QUEUED_DEADLINE_MS = 120_000;

const requestOf = ({ executionId, from, owner, agent, cells }: PlannedTurn, at: string): TurnRequest =>
  newTurn({
    from: REQUESTERS[from],
    ...(owner === from ? {} : { owner: OWNERS[owner] }),
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
 * @param afterTurn Awaited before the next turn is sent, with how many are over.
 */
export const sendTurns = async (
  client: Client,
  { turns, inFlight, answerMs }: Schedule,
  sent: Sent,
  signal: AbortSignal,
  afterTurn: (over: number) => Promise<void>,
): Promise<void> => {
  const lanes = Object.entries(REQUESTERS).flatMap(([name, requester]) => {
    const own = turns.filter(({ from }) => from === name);
    return Array.from({ length: Math.min(inFlight, own.length) }, async (_, lane) => {
      const { turns: queue } = await client(requester);
      for (const turn of own.filter((__, index) => index % inFlight === lane)) {
        if (signal.aborted) return;
        const request = requestOf(turn, new Date().toISOString());
        const submitted = await queued(queue, request, answerMs);
        if (turn.again) await (await queued(queue, request, answerMs)).stop();
        sent.turns.push(turn);
        await submitted.result;
        await submitted.stop();
        sent.over += 1;
        await afterTurn(sent.over);
      }
    });
  });
  await Promise.all(lanes);
};

/** A request that nobody acknowledged may be queued all the same: the same one is sent until somebody has. */
const queued = (queue: SharedOS['turns'], request: TurnRequest, answerMs: number) =>
  waitFor(
    `the queue to take ${request.executionId}`,
    async () => {
      const submitted = await queue.submit(request, { resultTimeoutMs: answerMs });
      if (submitted.ok) return submitted.value;
      const { error } = submitted;
      if (error.kind === 'unavailable' || error.error.code === CLIENT_CODES.queueFull) return undefined;
      throw new Error(`the turn was refused: ${JSON.stringify(error)}`);
    },
    QUEUED_DEADLINE_MS,
  );

const MESSAGE_DEADLINE_MS = 150_000;
const ASK_AGAIN_MS = 500;

/** Sends messages from bob to alice, each until it is known what became of it. */
export const sendMessages = async (client: Client, { messages }: Schedule, sent: Sent, signal: AbortSignal): Promise<void> => {
  const { messages: outbox } = await client(BOB);
  for (let index = 0; index < messages && !signal.aborted; index += 1) {
    const id = `message-${index}`;
    const message = { id, receiver: ALICE, purpose: 'weathering', payload: id, traceId: id, createdAt: new Date().toISOString() };
    await waitFor(
      `an answer to ${id}`,
      async () => {
        const answer = await outbox.send(message);
        const isKnown = answer.ok && !(answer.value.status === 'failed' && answer.value.error.code === 'replay_pending');
        return isKnown || pause(ASK_AGAIN_MS, false);
      },
      MESSAGE_DEADLINE_MS,
    );
    sent.messages.push(id);
  }
};
