import { type SharedOS, connectSharedOS } from '@sharedos/client';
import { type Address, addressKey, hashOf } from '@sharedos/contracts';
import { type LocalStack, startLocalStack } from '@sharedos/testing';
import { ALICE, BOB, NAMESPACE, PRINCIPALS } from '../../support/test-system.ts';
import { type Finding, allHold } from '../finding.ts';
import { gather, settled } from './evidence.ts';
import { findingsOf, outcomesOf } from './findings.ts';
import { type Sent, sendMessages, sendTurns } from './load.ts';
import { type Phases, phasesOf } from './phases.ts';
import { type Processes, processesOf } from './processes.ts';
import type { Schedule, StormOptions } from './schedule.ts';
import { type Servers, serversOf } from './servers.ts';
import { scheduleOf } from './storm-schedule.ts';
import { CAROL, type Client, boundsOf, effectsOf, prepare } from './world.ts';

export interface StormReport {
  readonly kind: StormOptions['kind'];
  readonly seed: number;
  readonly without?: StormOptions['without'];
  /** The hash of the schedule: equal for runs that did the same. */
  readonly schedule: string;
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

const PREPARED_MS = 300_000;
const SENT_MS = 300_000;
const SENT_MS_A_TURN = 8_000;
const CALM_MS = 600_000;
const SETTLED_MS = 500_000;
const GATHERED_MS = 300_000;

export interface StormWatchers {
  /** How far the run is, in words, every few seconds. */
  readonly onProgress?: (line: string) => void;
  /** Every line that a service prints. */
  readonly onLine?: (line: string) => void;
}

const quiet = (): void => undefined;

/** Runs a whole storm over real processes and servers, waits for calm, and judges by the logs. */
export const runStorm = async (options: StormOptions, { onProgress = quiet, onLine = quiet }: StormWatchers = {}): Promise<StormReport> => {
  const startedAt = performance.now();
  const schedule = scheduleOf(options);
  const phases = phasesOf(onProgress);
  const stack = await startLocalStack({
    principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CAROL }],
    roots: { [NAMESPACE]: [ALICE, BOB] },
    turnLeaseMs: TURN_LEASE_MS,
    onProgress,
  });
  const clients = clientsOf(stack);
  const servers = serversOf(stack);
  const processes = processesOf(stack, servers, schedule, onLine);
  try {
    const sent: Sent = { turns: [], over: 0, messages: [] };
    await underStorm({ stack, client: clients.client, servers, processes, schedule, phases, sent });
    const bounds = boundsOf(schedule);
    const effects = await effectsOf(stack, schedule);
    const evidence = await phases.run('reading the logs', GATHERED_MS, () => gather(stack, sent.turns, bounds, effects));
    const findings = [
      { rule: 'every phase of the run came to its end in time', contradictions: phases.failures },
      ...(evidence === undefined ? [] : findingsOf(evidence, { turns: sent.turns, messages: sent.messages, bounds })),
    ];
    return {
      kind: options.kind,
      seed: options.seed,
      ...(options.without === undefined ? {} : { without: options.without }),
      // Which guard is taken out changes nothing of what is done.
      schedule: hashOf({ ...schedule, options: { kind: options.kind, seed: options.seed, turns: options.turns } }),
      turns: schedule.turns.length,
      accepted: sent.turns.length,
      effects: effects.length,
      uses: evidence?.uses.length ?? 0,
      outcomes: evidence === undefined ? {} : outcomesOf(evidence),
      blows: processes.met,
      findings,
      ok: allHold(findings),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    processes.stop();
    await servers.close();
    await clients.close();
    await stack.stop();
  }
};

interface Run {
  readonly stack: LocalStack;
  readonly client: Client;
  readonly servers: Servers;
  readonly processes: Processes;
  readonly schedule: Schedule;
  readonly phases: Phases;
  readonly sent: Sent;
}

/** Everything up to the calm after the storm. What fails on the way is told by the phases, and the rest is judged all the same. */
const underStorm = async ({ stack, client, servers, processes, schedule, phases, sent }: Run): Promise<void> => {
  const { turns, messages, acts } = schedule;
  const isReady = await phases.run(
    'starting the services and granting',
    PREPARED_MS,
    async () => {
      await processes.begin();
      await prepare(stack, client, schedule);
      await processes.storm();
      return true;
    },
    processes.howFar,
  );
  if (isReady !== true) return;
  const act = async (over: number): Promise<void> => {
    for (const { afterTurns, act: what } of acts)
      if (afterTurns === over) await (what === 'keep redis' ? servers.keepRedis() : servers.rollRedisBack());
  };
  await phases.run(
    `sending ${turns.length} turns`,
    SENT_MS + turns.length * SENT_MS_A_TURN,
    (signal) => Promise.all([sendTurns(client, schedule, sent, signal, act), sendMessages(client, schedule, sent, signal)]),
    () => `${sent.over} turns and ${sent.messages.length} of ${messages} messages are over, ${processes.howFar()}`,
  );
  processes.answered();
  await phases.run('calming down', CALM_MS, processes.calm, processes.howFar);
  let howFar = '';
  await phases.run(
    'waiting for what is under way',
    SETTLED_MS,
    () => settled(stack, (line) => (howFar = line)),
    () => howFar,
  );
};

/** One connection of each principal. */
const clientsOf = (stack: LocalStack) => {
  const clients = new Map<string, Promise<SharedOS>>();
  const client = (principal: Address): Promise<SharedOS> => {
    const known = clients.get(addressKey(principal));
    if (known !== undefined) return known;
    const { user, password } = stack.credentials.principal(NAMESPACE, principal);
    const made = connectSharedOS({
      servers: stack.natsUrl,
      user,
      password,
      namespaceId: NAMESPACE,
      principal,
      requestTimeoutMs: REQUEST_MS,
    });
    clients.set(addressKey(principal), made);
    return made;
  };
  const close = async (): Promise<void> => {
    for (const made of clients.values()) await made.then((connected) => connected.close()).catch(() => undefined);
  };
  return { client, close };
};
