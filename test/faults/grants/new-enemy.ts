import { type ServiceProcess, startLocalStack } from '@sharedos/testing';
import { ALICE, NAMESPACE, PRINCIPALS } from '../../support/test-system.ts';
import { lotsFrom } from '../turns/lots.ts';
import { AnswerCounts, type Circumstances, startAuthorizer, waysOfItsOwn } from './authorizers.ts';
import { Blows } from './blows.ts';
import { openLogOf } from './log-facts.ts';
import { type Scene, type SceneOptions, closeAll, wayInto } from './scene.ts';

const LAG_MS = 200;
const SKEW_MS = 250;
const DEADLINE_MS = 2_000;
/** Soon given up: answers are lost with the connections that are cut. */
const ANSWER_MS = 3_000;

const NAMES = ['lagging', 'starting', 'reconnecting'] as const;

/**
 * Three authorizers: one hears the log late, one is always just started, the connections of one are cut again and again. The clock
 * of one is ahead, of another behind.
 */
export const newEnemy = async ({ store, seed, without, onProgress, onLine }: SceneOptions): Promise<Scene> => {
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const stack = await startLocalStack({ principals: PRINCIPALS, roots: { [NAMESPACE]: [ALICE] }, eventStore: store, onProgress });
    closers.push(() => stack.stop());
    const own = await waysOfItsOwn(stack);
    closers.push(own.close);

    const lots = lotsFrom(seed);
    const [ahead, behind, right] = lots.shuffled([SKEW_MS, -SKEW_MS, 0]) as [number, number, number];
    const counts = new AnswerCounts();
    const at = (clockOffsetMs: number, lagMs: number): Circumstances => ({ clockOffsetMs, lagMs, deadlineMs: DEADLINE_MS, without });
    const startingAgain = (): Promise<ServiceProcess> =>
      startAuthorizer(stack, counts, lots.below(2 ** 31), at(right, 0), { name: 'starting', onLine });
    onProgress('starting three authorizers …');
    let [, starting] = await Promise.all([
      startAuthorizer(stack, counts, seed, at(ahead, LAG_MS), { name: 'lagging', onLine }),
      startingAgain(),
      startAuthorizer(stack, counts, seed, at(behind, 0), { name: 'reconnecting', ways: own, onLine }),
    ]);
    const way = await wayInto(stack, stack.natsUrl);
    closers.push(way.close);

    const blows = new Blows();
    blows.repeat(seed + 1, async (lotsOfStarts) => {
      await (lotsOfStarts.below(2) === 0 ? starting.kill() : starting.stop());
      starting = await startingAgain();
      return 'another start';
    });
    blows.repeat(seed + 2, async (lotsOfCuts) => {
      lotsOfCuts.one(own.fronts).cutConnections();
      return 'connections cut';
    });

    const idle = (): readonly string[] => NAMES.filter((name) => counts.of(name).opened === 0).map((name) => `${name} opened none`);
    // Without a barrier nobody waits.
    const unhurried = (): readonly string[] =>
      without === undefined && counts.of('lagging').waited === 0 ? ['the lagging one never waited'] : [];
    return {
      log: stack.eventStore?.server.name ?? 'JetStream',
      ways: [way],
      answerMs: ANSWER_MS,
      isEnough: () => idle().length === 0 && unhurried().length === 0,
      calm: () => blows.end(),
      blows: () => blows.counted,
      answers: () => Object.fromEntries(NAMES.map((name) => [name, counts.of(name)])),
      findings: () => [
        {
          rule: 'each authorizer opened turns, and the lagging one had to wait for the log',
          contradictions: [...idle(), ...unhurried()],
        },
      ],
      openLog: () => openLogOf(stack),
      close: async () => {
        await blows.end().catch(() => undefined);
        await closeAll(closers);
      },
    };
  } catch (error) {
    await closeAll(closers);
    throw error;
  }
};
