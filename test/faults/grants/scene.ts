import { type Bus, connectBus } from '@sharedos/bus';
import { connectSharedOS } from '@sharedos/client';
import type { EventStore } from '@sharedos/event-store';
import type { LocalStack, LogPlace } from '@sharedos/testing';
import { ALICE, NAMESPACE } from '../../support/test-system.ts';
import type { Finding } from '../finding.ts';
import type { Way } from './rounds.ts';
import type { Answers, Guard } from './weather.ts';

export interface SceneOptions {
  readonly store: LogPlace;
  readonly seed: number;
  readonly without?: Guard | undefined;
  /** How far the run is, in words. */
  readonly onProgress: (line: string) => void;
  /** Every line that an authorizer prints. */
  readonly onLine: (line: string) => void;
}

/** Servers, authorizers on them, and what befalls both until it is calm. */
export interface Scene {
  /** Which server the log is on. */
  readonly log: string;
  readonly ways: readonly Way[];
  /** How long an answer of an authorizer is waited for. */
  readonly answerMs: number;
  /** Whether every trouble that the scene is about has been there. */
  isEnough(): boolean;
  /** Ends the troubles. Nothing is restarted for it but what a trouble had stopped. */
  calm(): Promise<void>;
  blows(): Readonly<Record<string, number>>;
  answers(): Readonly<Record<string, Answers>>;
  /** Rules of the scene itself, with the answers that were none. */
  findings(unavailable: ReadonlyMap<string, number>): readonly Finding[];
  openLog(): Promise<OpenedLog>;
  close(): Promise<void>;
}

/** The log itself, past every service. */
export interface OpenedLog {
  readonly store: EventStore;
  close(): Promise<void>;
}

const COMMAND_MS = 2_500;

export interface ClosableWay extends Way {
  readonly executor: Bus;
  close(): Promise<void>;
}

/** Connects as the principal who issues and revokes, and as the service that opens turns. */
export const wayInto = async ({ credentials }: LocalStack, natsUrl: string): Promise<ClosableWay> => {
  const own = credentials.principal(NAMESPACE, ALICE);
  const service = credentials.service('tool-executor');
  const alice = await connectSharedOS({
    servers: natsUrl,
    user: own.user,
    password: own.password,
    namespaceId: NAMESPACE,
    principal: ALICE,
    requestTimeoutMs: COMMAND_MS,
  });
  const { user, password, inboxPrefix } = service;
  const executor = await connectBus({ servers: natsUrl, user, pass: password, name: 'faults', inboxPrefix });
  return {
    alice,
    executor,
    close: async () => {
      await alice.close();
      await executor.close();
    },
  };
};

/** Runs what was begun, newest first, whatever one of it says. */
export const closeAll = async (closers: readonly (() => Promise<unknown>)[]): Promise<void> => {
  const failures: unknown[] = [];
  for (const close of closers.toReversed()) await close().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
};
