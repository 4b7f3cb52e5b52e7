import { type SharedOS, connectSharedOS } from '@sharedos/client';
import { type EventStore, eventStoreDbEventStore, jetStreamEventStore } from '@sharedos/event-store';
import { type LocalStack, type LogPlace, startLocalStack } from '@sharedos/testing';
import { connectAs } from '../../support/evidence.ts';
import { ALICE, NAMESPACE, PRINCIPALS } from '../../support/test-system.ts';
import type { Finding } from '../turns/findings.ts';
import { judge } from './judge.ts';
import { readLogFacts } from './log-facts.ts';
import { newEnemy } from './new-enemy.ts';
import { playRounds } from './rounds.ts';
import type { Answers, Guard } from './weather.ts';

export interface GrantsOptions {
  readonly store: LogPlace;
  readonly seed: number;
  readonly rounds: number;
  readonly without?: Guard | undefined;
}

export interface GrantsReport extends GrantsOptions {
  /** Which server the log was on. */
  readonly log: string;
  /** Turns that were opened, each with one question decided. */
  readonly opened: number;
  /** Answers that were none, by kind, and how often: they allow nothing and count for nothing. */
  readonly unavailable: Readonly<Record<string, number>>;
  readonly answers: Readonly<Record<string, Answers>>;
  readonly blows: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly ok: boolean;
  readonly seconds: number;
}

export interface Watchers {
  /** How far the run is, in words. */
  readonly onProgress: (line: string) => void;
  /** Every line that an authorizer prints. */
  readonly onLine: (line: string) => void;
}

/** The authorizers of a run, and what befalls them until it is calm. */
export interface Disturbance {
  calm(): Promise<void>;
  blows(): Readonly<Record<string, number>>;
  answers(): Readonly<Record<string, Answers>>;
  /** Of whether what the run is about was there at all. */
  findings(): readonly Finding[];
  close(): Promise<void>;
}

const PLAYERS = 48;
const COMMAND_MS = 1_500;
/** Past the deadline of the authorizers, so that their own word arrives. */
const OPEN_MS = 4_000;
const PROGRESS_ROUNDS = 500;

const quiet = (): void => undefined;

/** Plays rounds over authorizers in trouble, and judges them by the log. */
export const runGrants = async (options: GrantsOptions, watchers: Partial<Watchers> = {}): Promise<GrantsReport> => {
  const { onProgress = quiet, onLine = quiet } = watchers;
  const startedAt = performance.now();
  const stack = await startLocalStack({ principals: PRINCIPALS, roots: { [NAMESPACE]: [ALICE] }, eventStore: options.store, onProgress });
  const closers: (() => Promise<unknown>)[] = [() => stack.stop()];
  try {
    const disturbance = await newEnemy(stack, options, { onProgress, onLine });
    closers.push(disturbance.close);
    const executor = await connectAs(stack, 'tool-executor');
    closers.push(() => executor.close());
    const alice = await connectAlice(stack);
    closers.push(() => alice.close());

    onProgress(`playing ${options.rounds} rounds …`);
    const played = await playRounds({
      seed: options.seed,
      rounds: options.rounds,
      players: PLAYERS,
      ways: [{ alice, executor }],
      openMs: OPEN_MS,
      onRound: (rounds) => {
        if (rounds % PROGRESS_ROUNDS === 0) onProgress(`${rounds} rounds`);
      },
    });
    await disturbance.calm();
    onProgress('reading the log …');
    const log = await openLogOf(stack);
    closers.push(log.close);
    const facts = await readLogFacts(log.store, NAMESPACE);
    const findings = [...judge(facts, log.store.storeId, played), ...disturbance.findings()];
    return {
      ...options,
      log: stack.eventStore?.server.name ?? 'JetStream',
      opened: played.opened.length,
      unavailable: Object.fromEntries(played.unavailable),
      answers: disturbance.answers(),
      blows: disturbance.blows(),
      findings,
      ok: findings.every(({ contradictions }) => contradictions.length === 0),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    for (const close of closers.reverse()) await close();
  }
};

const connectAlice = (stack: LocalStack): Promise<SharedOS> => {
  const { user, password } = stack.credentials.principal(NAMESPACE, ALICE);
  return connectSharedOS({
    servers: stack.natsUrl,
    user,
    password,
    namespaceId: NAMESPACE,
    principal: ALICE,
    requestTimeoutMs: COMMAND_MS,
  });
};

/** The log itself, past every service. */
const openLogOf = async (stack: LocalStack): Promise<{ readonly store: EventStore; close(): Promise<void> }> => {
  const bus = await connectAs(stack, 'authorizer');
  const settings = stack.eventStore?.settings;
  const opened =
    settings === undefined
      ? await jetStreamEventStore({ bus })
      : await eventStoreDbEventStore({
          connectionString: settings['SHAREDOS_EVENTSTORE_URL'] ?? '',
          prefix: settings['SHAREDOS_EVENTSTORE_PREFIX'] ?? '',
        });
  if (!opened.ok) throw new Error(`the log cannot be read: ${opened.error.reason}`);
  const store = opened.value;
  return {
    store,
    close: async () => {
      await store.close();
      await bus.close();
    },
  };
};
