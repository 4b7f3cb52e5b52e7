import { type Route, route } from '@sharedos/bus';
import { type AuditEvent, SETTINGS_DEFAULT, TurnList, TurnListReply, ok, parseSubject, principalSubject } from '@sharedos/contracts';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { type Limits, NamespaceLimits, turnOverLimit, withinRate } from './namespace-limits.ts';
import { NOON, alice } from './turn.fixture.ts';

const world = (settings: Record<string, Limits | undefined> = {}) => {
  let now = 0;
  let asked = 0;
  const limits = new NamespaceLimits(
    async (namespaceId) => {
      asked += 1;
      return settings[namespaceId];
    },
    () => now,
  );
  return {
    limits,
    settings,
    pass: (ms: number) => (now += ms),
    asked: () => asked,
    /** Requests that are taken out of so many at once. */
    taken: async (namespaceId: string, count: number) => {
      const judged = await Promise.all(Array.from({ length: count }, () => limits.judgeRequest(namespaceId)));
      return judged.filter((refused) => refused === undefined).length;
    },
  };
};
const of = (limits: Partial<Limits>): Limits => ({ ...SETTINGS_DEFAULT, ...limits });

describe('turns that wait', () => {
  it('are taken as long as no more wait behind them than may', async () => {
    const { limits } = world({ a: of({ turnsQueuedMax: 3 }) });
    expect(await limits.judgeTurn('a', 2)).toBeUndefined();
  });
  it('are refused, with when to try again, while more do', async () => {
    const { limits } = world({ a: of({ turnsQueuedMax: 3 }) });
    expect(await limits.judgeTurn('a', 3)).toMatchObject({
      code: 'turns_queued_limit_exceeded',
      retryable: true,
      details: { retryAfterMs: 1_000 },
    });
  });
  it('of one namespace are not counted against another', async () => {
    const { limits } = world({ a: of({ turnsQueuedMax: 1 }), b: of({ turnsQueuedMax: 50 }) });
    expect([(await limits.judgeTurn('a', 40))?.code, await limits.judgeTurn('b', 40)]).toEqual(['turns_queued_limit_exceeded', undefined]);
  });
  it('are judged once, and only those that principals ask for', async () => {
    const { limits } = world({ w1: of({ turnsQueuedMax: 1 }) });
    const parsed = parseSubject(principalSubject('turn.request', 'w1', alice));
    const first = { parsed, redelivered: false, waitingBehind: 9 };
    expect((await turnOverLimit({ limits }, first))?.code).toBe('turns_queued_limit_exceeded');
    expect(await turnOverLimit({ limits }, { ...first, redelivered: true })).toBeUndefined();
    const fromMessage = parseSubject(principalSubject('turn.recipient', 'w1', alice));
    expect(await turnOverLimit({ limits }, { ...first, parsed: fromMessage })).toBeUndefined();
  });
});

describe('requests', () => {
  it('are taken a second’s worth at once, and then as fast as they come back', async () => {
    const { taken, pass } = world({ a: of({ requestsPerSecondMax: 10 }) });
    expect(await taken('a', 25)).toBe(10);
    pass(300);
    expect(await taken('a', 25)).toBe(3);
    pass(60_000);
    expect(await taken('a', 25)).toBe(10);
  });
  it('over that are told when the next will be taken', async () => {
    const { limits, taken } = world({ a: of({ requestsPerSecondMax: 10 }) });
    await taken('a', 10);
    expect(await limits.judgeRequest('a')).toMatchObject({
      error: { code: 'request_rate_exceeded', retryable: true, details: { retryAfterMs: 100 } },
    });
  });
  it('of one namespace take nothing from another, however many there are', async () => {
    const { taken } = world({ a: of({ requestsPerSecondMax: 10 }), b: of({ requestsPerSecondMax: 10 }) });
    expect([await taken('a', 10_000), await taken('b', 10)]).toEqual([10, 10]);
  });
  it('count with the turns that are taken', async () => {
    const { limits, taken } = world({ a: of({ requestsPerSecondMax: 2 }) });
    await taken('a', 2);
    expect(await limits.judgeTurn('a', 0)).toMatchObject({ code: 'request_rate_exceeded' });
  });
});

describe('the limits of a namespace', () => {
  it('are asked for anew every five seconds, and not more often', async () => {
    const { taken, asked, settings, pass } = world({ a: of({ requestsPerSecondMax: 1 }) });
    expect(await taken('a', 5)).toBe(1);
    settings['a'] = of({ requestsPerSecondMax: 100 });
    pass(4_999);
    expect([await taken('a', 5), asked()]).toEqual([1, 1]);
    pass(1);
    await taken('a', 1);
    pass(1_000);
    expect([await taken('a', 200), asked()]).toEqual([100, 2]);
  });
  it('stay as they were while nobody can say, and are the usual ones before anybody could', async () => {
    const { taken, settings, pass, limits } = world({ a: of({ requestsPerSecondMax: 2 }) });
    await taken('a', 1);
    settings['a'] = undefined;
    pass(10_000);
    expect(await taken('a', 5)).toBe(2);
    expect(await limits.judgeTurn('nobody knows', SETTINGS_DEFAULT.turnsQueuedMax - 1)).toBeUndefined();
    expect(await limits.judgeTurn('nobody knows', SETTINGS_DEFAULT.turnsQueuedMax)).toMatchObject({ code: 'turns_queued_limit_exceeded' });
  });
});

describe('a route within the rate of its namespace', () => {
  const served = (limits: NamespaceLimits) => {
    const recorded: AuditEvent[] = [];
    let answered = 0;
    const inner: Route = route('turn.list', {
      request: TurnList,
      reply: TurnListReply,
      handle: async () => {
        answered += 1;
        return { ok: true, value: { turns: [] } };
      },
    });
    const ports = {
      limits,
      audit: async (event: AuditEvent) => ok(void recorded.push(event)),
      clock: () => Date.parse(NOON),
      ids: countingIds('id'),
    };
    const delivery = { verb: 'turn.list', namespaceId: 'a', principal: alice, rest: [], signal: new AbortController().signal } as const;
    return { recorded, answered: () => answered, ask: () => withinRate(ports, inner).answer(Buffer.from('{}'), delivery), ports };
  };

  it('answers what may be asked, and refuses the rest without doing anything', async () => {
    const { limits } = world({ a: of({ requestsPerSecondMax: 2 }) });
    const { ask, answered } = served(limits);
    const answers = [await ask(), await ask(), await ask()];
    expect(answers.map(({ ok: isAnswered }) => isAnswered)).toEqual([true, true, false]);
    expect([answers[2], answered()]).toMatchObject([{ error: { code: 'request_rate_exceeded' } }, 2]);
  });
  it('puts the first refusal of a second on record, and no flood of them', async () => {
    const { limits, pass } = world({ a: of({ requestsPerSecondMax: 1 }) });
    const { ask, recorded } = served(limits);
    for (let requests = 0; requests < 50; requests += 1) await ask();
    expect(recorded).toMatchObject([{ type: 'admin.refused', actor: alice, action: 'turn.list', reason: 'request_rate_exceeded' }]);
    pass(1_000);
    for (let requests = 0; requests < 50; requests += 1) await ask();
    expect(recorded).toHaveLength(2);
  });
  it('leaves what services ask of each other alone', () => {
    const { limits } = world();
    const { ports } = served(limits);
    const internal = { verb: 'execution.control' } as Route;
    expect(withinRate(ports, internal)).toBe(internal);
  });
});
