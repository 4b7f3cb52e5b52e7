import { type SharedOS, connectSharedOS } from '@sharedos/client';
import type { Address } from '@sharedos/contracts';
import { startLocalStack } from '@sharedos/testing';
import { ALICE, BOB, NAMESPACE, PRINCIPALS } from '../../support/test-system.ts';
import { gather, settled } from './evidence.ts';
import { type Finding, findingsOf, outcomesOf } from './findings.ts';
import { boundsOf, effectsOf, prepare, sendMessages, sendTurns } from './load.ts';
import { startProcesses } from './processes.ts';
import { type StormOptions, scheduleOf } from './schedule.ts';
import { serversOf } from './servers.ts';

export interface StormReport {
  readonly seed: number;
  readonly turns: number;
  readonly accepted: number;
  readonly effects: number;
  readonly uses: number;
  /** How turns and calls ended, and how often. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Blows that fell, in the order in which they fell. */
  readonly blows: readonly string[];
  readonly findings: readonly Finding[];
  readonly ok: boolean;
  readonly seconds: number;
}

/** Short, so that a turn whose owner is gone is soon somebody else's. */
const TURN_LEASE_MS = 3_000;
const REQUEST_MS = 4_000;

export interface StormWatchers {
  /** How far the run is, in words. */
  readonly onProgress?: (line: string) => void;
  /** Every line that a service prints. */
  readonly onLine?: (line: string) => void;
}

const quiet = (): void => undefined;

/** Runs a whole storm over real processes and servers, waits for calm, and judges by the logs. */
export const runStorm = async (options: StormOptions, { onProgress = quiet, onLine = quiet }: StormWatchers = {}): Promise<StormReport> => {
  const startedAt = performance.now();
  const schedule = scheduleOf(options);
  const stack = await startLocalStack({
    principals: PRINCIPALS,
    roots: { [NAMESPACE]: [ALICE, BOB] },
    turnLeaseMs: TURN_LEASE_MS,
    onProgress,
  });
  const clients = new Map<Address, Promise<SharedOS>>();
  const client = (owner: Address): Promise<SharedOS> => {
    const { user, password } = stack.credentials.principal(NAMESPACE, owner);
    const known = clients.get(owner);
    if (known !== undefined) return known;
    const made = connectSharedOS({
      servers: stack.natsUrl,
      user,
      password,
      namespaceId: NAMESPACE,
      principal: owner,
      requestTimeoutMs: REQUEST_MS,
    });
    clients.set(owner, made);
    return made;
  };
  const servers = serversOf(stack);
  try {
    onProgress('starting the services …');
    const processes = await startProcesses(stack, servers, schedule, () => prepare(stack, client, schedule), onLine);
    onProgress(`sending ${schedule.turns.length} turns …`);
    let sent = 0;
    const [turns, messages] = await Promise.all([
      sendTurns(client, schedule, () => {
        sent += 1;
        if (sent % 100 === 0) onProgress(`${sent} turns, ${processes.met.length} blows, ${processes.left()} to come`);
      }),
      sendMessages(client, schedule),
    ]);
    onProgress('calm, and waiting for whatever is still under way …');
    await processes.calm();
    await settled(stack, onProgress);
    const bounds = boundsOf(schedule);
    const evidence = await gather(stack, { turns, bounds }, await effectsOf(stack, schedule));
    const findings = findingsOf(evidence, { turns, messages, bounds });
    return {
      seed: options.seed,
      turns: options.turns,
      accepted: turns.length,
      effects: evidence.effects.length,
      uses: evidence.uses.length,
      outcomes: outcomesOf(evidence),
      blows: processes.met,
      findings,
      ok: findings.every(({ contradictions }) => contradictions.length === 0),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    await servers.close();
    for (const made of clients.values()) await made.then((connected) => connected.close()).catch(() => undefined);
    await stack.stop();
  }
};
