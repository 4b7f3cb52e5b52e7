import { startLocalStack } from '@sharedos/testing';
import { ALICE, NAMESPACE, PRINCIPALS } from '../../support/test-system.ts';
import type { Finding } from '../finding.ts';
import { AnswerCounts, startAuthorizer, waysOfItsOwn } from './authorizers.ts';
import { Blows, LONG } from './blows.ts';
import { openLogOf } from './log-facts.ts';
import { OPEN_UNANSWERED } from './rounds.ts';
import { type Scene, type SceneOptions, closeAll, wayInto } from './scene.ts';

const DEADLINE_MS = 2_000;
/** Several deadlines, for a machine that is busy with other things. */
const ANSWER_MS = 15_000;
const SOME_MS = 400;
const MOST_MS = 3_500;
/** A slow server: it works for so long, and then stands still for so long. */
const WORKS_MS = 25;
const STANDS_MS = 75;

const NAMES = ['one', 'another'] as const;
const OUTAGES = ['killed', 'restarted', 'frozen', 'slow', 'partitioned', 'answers held back', 'connections cut'] as const;

/** Two authorizers, and a store of the log that is killed, restarted, frozen, slow, and cut off from one of them. Nobody restarts an authorizer. */
export const outages = async ({ store, seed, without, onProgress, onLine }: SceneOptions): Promise<Scene> => {
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const stack = await startLocalStack({ principals: PRINCIPALS, roots: { [NAMESPACE]: [ALICE] }, eventStore: store, onProgress });
    closers.push(() => stack.stop());
    const server = stack.eventStore === undefined ? stack.nats : stack.eventStore.server.server;
    if (server === undefined) throw new Error(`${stack.eventStore?.server.name ?? 'the store'} is not ours to stop`);
    const own = await waysOfItsOwn(stack);
    closers.push(own.close);
    // The last is the one to the log; where that is in JetStream, it is the one to everything.
    const toLog = own.fronts.at(-1);

    const counts = new AnswerCounts();
    const circumstances = { clockOffsetMs: 0, lagMs: 0, deadlineMs: DEADLINE_MS, without };
    onProgress('starting two authorizers …');
    const authorizers = await Promise.all([
      startAuthorizer(stack, counts, seed, circumstances, { name: 'one', ways: own, onLine }),
      startAuthorizer(stack, counts, seed, circumstances, { name: 'another', onLine }),
    ]);
    const way = await wayInto(stack, stack.natsUrl);
    closers.push(way.close);

    const blows = new Blows();
    let left: (typeof OUTAGES)[number][] = [];
    blows.repeat(
      seed + 1,
      async (lots) => {
        if (left.length === 0) left = lots.shuffled(OUTAGES);
        const outage = left.pop() as (typeof OUTAGES)[number];
        const forMs = SOME_MS + lots.below(MOST_MS - SOME_MS);
        onProgress(`the log is ${outage} …`);
        switch (outage) {
          case 'killed':
            await server.kill();
            await blows.lasting(forMs);
            await server.restart();
            break;
          case 'restarted':
            await server.restart();
            break;
          case 'frozen':
            server.pause();
            await blows.lasting(forMs);
            server.resume();
            break;
          case 'slow':
            for (let slowMs = 0; slowMs < forMs; slowMs += WORKS_MS + STANDS_MS) {
              server.pause();
              await blows.lasting(STANDS_MS);
              server.resume();
              await blows.lasting(WORKS_MS);
            }
            break;
          case 'partitioned':
          case 'answers held back':
            if (outage === 'partitioned') toLog?.blackHole();
            else toLog?.holdAnswers();
            await blows.lasting(forMs);
            toLog?.heal();
            break;
          case 'connections cut':
            toLog?.cutConnections();
            break;
        }
        return outage;
      },
      LONG,
    );

    const unmet = (): readonly string[] => OUTAGES.filter((outage) => blows.counted[outage] === undefined);
    let openedBefore: number[] = [];
    const opened = (): number[] => NAMES.map((name) => counts.of(name).opened);
    const away = (): readonly string[] => NAMES.filter((_, index) => (opened()[index] ?? 0) <= (openedBefore[index] ?? Infinity));
    let isCalm = false;
    return {
      log: stack.eventStore?.server.name ?? 'JetStream',
      ways: [way],
      answerMs: ANSWER_MS,
      isEnough: () => (isCalm ? away().length === 0 : unmet().length === 0),
      calm: async () => {
        await blows.end();
        openedBefore = opened();
        isCalm = true;
      },
      blows: () => blows.counted,
      answers: () => Object.fromEntries(NAMES.map((name) => [name, counts.of(name)])),
      findings: (unavailable): readonly Finding[] => [
        { rule: 'every outage was there', contradictions: unmet().map((outage) => `never ${outage}`) },
        {
          rule: 'each authorizer opens turns again, and none was restarted',
          contradictions: [
            ...away().map((name) => `${name} opened none after it was calm`),
            ...authorizers.filter((authorizer) => !authorizer.running()).map(({ instance }) => `authorizer ${instance} has ended`),
          ],
        },
        {
          rule: 'while there is a broker, every request to open a turn is answered',
          // With the log in JetStream the broker is what is away.
          contradictions:
            stack.eventStore === undefined || !unavailable.has(OPEN_UNANSWERED)
              ? []
              : [`${unavailable.get(OPEN_UNANSWERED)} were not, within ${ANSWER_MS} ms`],
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
