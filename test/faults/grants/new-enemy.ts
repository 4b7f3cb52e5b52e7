import { setTimeout as pause } from 'node:timers/promises';
import type { LocalStack, ServiceProcess } from '@sharedos/testing';
import { type Lots, lotsFrom } from '../turns/lots.ts';
import { AnswerCounts, type Circumstances, startAuthorizer, waysOfItsOwn } from './authorizers.ts';
import type { Disturbance, Watchers } from './run-grants.ts';
import type { Guard } from './weather.ts';

const LAG_MS = 200;
const SKEW_MS = 250;
const DEADLINE_MS = 2_000;
const CALM_AT_LEAST_MS = 300;
const CALM_AT_MOST_MS = 2_000;

const NAMES = ['lagging', 'starting', 'reconnecting'] as const;

/**
 * Three authorizers: one hears the log late, one is always just started, the connections of one are cut again and again. The clock
 * of one is ahead, of another behind.
 */
export const newEnemy = async (
  stack: LocalStack,
  { seed, without }: { readonly seed: number; readonly without?: Guard | undefined },
  { onLine }: Watchers,
): Promise<Disturbance> => {
  const lots = lotsFrom(seed);
  const [ahead, behind, right] = lots.shuffled([SKEW_MS, -SKEW_MS, 0]) as [number, number, number];
  const counts = new AnswerCounts();
  const at = (clockOffsetMs: number, lagMs: number): Circumstances => ({ clockOffsetMs, lagMs, deadlineMs: DEADLINE_MS, without });
  const ways = await waysOfItsOwn(stack);
  const startingAgain = (): Promise<ServiceProcess> =>
    startAuthorizer(stack, counts, lots.below(2 ** 31), at(right, 0), { name: 'starting', onLine });
  let [, starting] = await Promise.all([
    startAuthorizer(stack, counts, seed, at(ahead, LAG_MS), { name: 'lagging', onLine }),
    startingAgain(),
    startAuthorizer(stack, counts, seed, at(behind, 0), { name: 'reconnecting', ways, onLine }),
  ]);

  let blows = { cuts: 0, starts: 0 };
  const stopping = new AbortController();
  const repeatedly = async (lotsOfIts: Lots, blow: () => Promise<void>): Promise<void> => {
    while (!stopping.signal.aborted) {
      const calmMs = CALM_AT_LEAST_MS + lotsOfIts.below(CALM_AT_MOST_MS - CALM_AT_LEAST_MS);
      await pause(calmMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (!stopping.signal.aborted) await blow();
    }
  };
  const [lotsOfStarts, lotsOfCuts] = [lotsFrom(seed + 1), lotsFrom(seed + 2)];
  const troubles = Promise.all([
    repeatedly(lotsOfStarts, async () => {
      await (lotsOfStarts.below(2) === 0 ? starting.kill() : starting.stop());
      starting = await startingAgain();
      blows = { ...blows, starts: blows.starts + 1 };
    }),
    repeatedly(lotsOfCuts, async () => {
      lotsOfCuts.one(ways.fronts).cutConnections();
      blows = { ...blows, cuts: blows.cuts + 1 };
    }),
  ]);
  // Whoever waits for the end hears of it; until then it must not end the process.
  troubles.catch(() => undefined);
  return {
    calm: async () => {
      stopping.abort();
      await troubles;
    },
    blows: () => blows,
    answers: () => Object.fromEntries(NAMES.map((name) => [name, counts.of(name)])),
    findings: () => [
      {
        rule: 'each authorizer opened turns, and the lagging one had to wait for the log',
        // Without a barrier nobody waits.
        contradictions: [
          ...NAMES.filter((name) => counts.of(name).opened === 0).map((name) => `${name} opened none`),
          ...(without === undefined && counts.of('lagging').waited === 0 ? ['the lagging one never waited'] : []),
        ],
      },
    ],
    close: () => ways.close(),
  };
};
