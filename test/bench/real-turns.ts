import { randomUUID } from 'node:crypto';
import type { Bus } from '@sharedos/bus';
import { newTurn } from '@sharedos/client';
import { type Address, principalSubject } from '@sharedos/contracts';
import { type BenchSystem, FILE, NAMESPACE, SCOUT, TOOL } from './bench-system.ts';

const COMPLETED = Buffer.from('"tool.completed"');

/** Runs one real turn of so many calls, published as a client does. @returns Milliseconds from publishing to its answer. */
export const runTurn = async (
  { system }: BenchSystem,
  owner: Address,
  calls: number,
  executionId: string = randomUUID(),
): Promise<number> => {
  const turn = newTurn({
    from: owner,
    agent: SCOUT,
    purpose: 'benchmark',
    executionId,
    options: { maxSteps: calls + 1, timeoutMs: 120_000 },
  });
  const script = Array.from({ length: calls }, () => ({ tool: TOOL, arguments: FILE }));
  const { turns } = await system.client(owner);
  const begun = performance.now();
  // A stated output, so that the answer does not grow with the calls.
  const submitted = await turns.submit({ ...turn, state: { script, output: null } });
  if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
  const answer = await submitted.value.result;
  const took = performance.now() - begun;
  if (!answer.ok || answer.value.result.status !== 'succeeded') throw new Error('a turn did not succeed');
  const refused = answer.value.result.events.filter(({ data }) => (data as { status?: string }).status === 'denied');
  if (refused.length > 0) throw new Error(`${refused.length} calls of a turn were refused`);
  return took;
};

/**
 * Microseconds from the end of one call to the end of the next, in the tool-executor's own process, as its requester hears them.
 *
 * An event says only the millisecond it happened in, so its arrival is timed here: the way it takes is the same for all, and falls
 * out of the difference but for its jitter.
 */
export const timesBetweenCalls = async (bench: BenchSystem, listener: Bus, owner: Address, calls: number): Promise<number[]> => {
  const executionId = randomUUID();
  const heard: number[] = [];
  const subscribed = await listener.subscribe(principalSubject('turn.event', NAMESPACE, owner, executionId), ({ data }) => {
    if (Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(COMPLETED)) heard.push(performance.now());
  });
  if (!subscribed.ok) throw new Error(subscribed.error.reason);
  await runTurn(bench, owner, calls, executionId);
  await subscribed.value.stop();
  if (heard.length !== calls) throw new Error(`${heard.length} of ${calls} calls were heard of`);
  return heard.slice(1).map((at, index) => (at - (heard[index] as number)) * 1_000);
};
