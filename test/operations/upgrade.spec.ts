import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import type { SubmittedTurn } from '@sharedos/client';
import type { ServiceProcess } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectAs, readOperations } from '../support/evidence.ts';
import { answerOf, callsOf, submit, turnOf } from '../support/many-turns.ts';
import { ALICE, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 300_000;
/** Turns that are under way at once while processes are replaced. */
const AT_ONCE = 4;

let system: TestSystem;

beforeAll(async () => {
  system = await startTestSystem({ replicas: { authorizer: 2, 'tool-executor': 2, 'messaging-router': 2, 'audit-projector': 2 } });
  await system.letAliceRunScout();
  await system.grant('log', { path: ['log'], actions: ['read', 'create', 'append'] });
  await system.files(ALICE, { 'log/begin': '' });
});
afterAll(() => system?.stop());

describe('replacing every process, one after the other, under traffic', () => {
  it('refuses no turn, loses none, and has no effect twice', { timeout: DEADLINE_MS }, async () => {
    const alice = await system.client(ALICE);
    const traffic = new AbortController();
    const ended: { readonly id: string; readonly calls: readonly string[]; readonly status: string }[] = [];
    let count = 0;
    const keepRunning = async (): Promise<void> => {
      while (!traffic.signal.aborted) {
        const id = `turn-${(count += 1)}`;
        const calls = [{ tool: 'files.create', arguments: { path: ['log', id], content: id } }];
        const submitted: SubmittedTurn = await submit(alice, turnOf({ executionId: id, calls }));
        const result = await answerOf(submitted);
        ended.push({ id, status: result.status, calls: callsOf(result).map(({ status, code }) => code ?? status) });
      }
    };
    const running = Array.from({ length: AT_ONCE }, keepRunning);

    const replaced: string[] = [];
    for (const name of SERVICE_NAMES) {
      for (const old of [...system.services[name]]) {
        // The new one is ready before the old one is asked to go: as many serve as before.
        await system.stack.startService(name, { instance: `${old.instance}-next` });
        replaced.push(`${name} ${await goneWell(old)}`);
        const before = ended.length;
        await expect.poll(() => ended.length, { timeout: 60_000 }).toBeGreaterThan(before + AT_ONCE);
      }
    }
    traffic.abort();
    await Promise.all(running);

    expect(replaced).toEqual(SERVICE_NAMES.flatMap((name: ServiceName) => [`${name} 0`, `${name} 0`]));
    expect(ended.length).toBeGreaterThan(replaced.length * AT_ONCE);
    // A call that was made again would find its file there, and a turn that was refused or interrupted has another status.
    expect(ended.filter(({ status, calls }) => status !== 'succeeded' || calls.join() !== 'succeeded')).toEqual([]);

    const bus = await connectAs(system.stack, 'audit-projector');
    try {
      const records = JSON.stringify(await readOperations(bus));
      for (const { id } of ended) expect(records).toContain(`"${id}"`);
    } finally {
      await bus.close();
    }
  });
});

/** @returns The code that it ended with, after it finished what it had begun. */
const goneWell = async (old: ServiceProcess): Promise<number | null> => (await old.stop()).code;
