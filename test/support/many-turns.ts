import { CLIENT_CODES, type NewTurn, type ScriptedCall, type SharedOS, type SubmittedTurn, newTurn } from '@sharedos/client';
import type { ExecutionResult, TurnRequest } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { ALICE, SCOUT } from './test-system.ts';

const QUEUED_DEADLINE_MS = 60_000;

/** What one scripted call was answered. */
export interface CallAnswer {
  readonly tool: string;
  readonly status: 'succeeded' | 'denied' | 'failed';
  readonly code?: string;
}

/** A turn of scout for alice, or as said. */
export const turnOf = (turn: Partial<NewTurn> & { readonly calls: readonly ScriptedCall[] }): TurnRequest =>
  newTurn({ from: ALICE, agent: SCOUT, purpose: 'testing', ...turn });

/** Queues a turn; waits for room when the principal's queue is full. */
export const submit = async (client: SharedOS, request: TurnRequest): Promise<SubmittedTurn> =>
  waitFor(
    `room in the queue for ${request.executionId}`,
    async () => {
      const submitted = await client.turns.submit(request);
      if (submitted.ok) return submitted.value;
      if (submitted.error.kind === 'refused' && submitted.error.error.code === CLIENT_CODES.queueFull) return undefined;
      throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
    },
    QUEUED_DEADLINE_MS,
  );

export const answerOf = async (turn: SubmittedTurn): Promise<ExecutionResult> => {
  const answer = await turn.result;
  if (!answer.ok) throw new Error(`the turn ${turn.executionId} was not answered: ${JSON.stringify(answer.error)}`);
  return answer.value.result;
};

/** Queues all of them without waiting for any, then waits for every answer. */
export const runAll = (client: SharedOS, requests: readonly TurnRequest[]): Promise<readonly ExecutionResult[]> =>
  Promise.all(requests.map(async (request) => answerOf(await submit(client, request))));

/** The answers of a turn's calls; none for a turn that did not come to its end by itself. */
export const callsOf = (result: ExecutionResult): readonly CallAnswer[] =>
  result.status === 'succeeded' ? (result.output as unknown as { readonly calls: readonly CallAnswer[] }).calls : [];

/** How often each answer was given: `succeeded`, or the code of the refusal or failure. */
export const countAnswers = (answers: readonly CallAnswer[]): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { status, code } of answers) {
    const answer = status === 'succeeded' ? status : (code ?? status);
    counts[answer] = (counts[answer] ?? 0) + 1;
  }
  return counts;
};
