// Loaded into a service's own process before the service itself: the service is the one that ships, unchanged. What is struck is its
// way to the broker and to Redis, and the moment of its tools' effects.
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { parseSubject } from '@sharedos/contracts';
import { ToolRegistry } from '@sharedos/kernel';
import { Redis } from 'ioredis';
import { Replies } from '../../../libs/bus/src/replies.ts';
import { type Lots, lotsFrom } from './lots.ts';
import { BLOW_EVENT, type Step, TROUBLES, WEATHER_VARIABLE, type Weather, standsStill } from './steps.ts';
import { takeOutEpoch, unguarded } from './take-out-guard.ts';

const DELAY_MS = 300;

const weather = JSON.parse(process.env[WEATHER_VARIABLE] ?? '{"seed":0,"troubledPerMille":0}') as Weather;
const lots: Lots = lotsFrom(weather.seed);
let times = 0;

const at = (step: Step): void => {
  const { fate } = weather;
  if (fate === undefined || fate.step !== step) return;
  times += 1;
  if (times !== fate.nth) return;
  process.stdout.write(`${JSON.stringify({ event: BLOW_EVENT, ...fate, pid: process.pid })}\n`);
  // Nothing of this process runs after either signal: not even what is next on this line of control.
  if (fate.blow === 'kill') process.kill(process.pid, 'SIGKILL');
  if (standsStill(fate.blow)) process.kill(process.pid, 'SIGSTOP');
};

const around = async <T>(arrow: string | undefined, go: () => Promise<T>): Promise<T> => {
  if (arrow === undefined) return go();
  at(`before ${arrow}`);
  const answer = await go();
  at(`after ${arrow}`);
  return answer;
};

type Send = typeof Replies.prototype.send;

/** What a message is, as a step: by its subject, and of the ledger by the type of the record. */
const arrowOf = (natsSubject: string, payload: Uint8Array | string): string | undefined => {
  if (natsSubject.startsWith('$JS.ACK.')) return payload === '+ACK' ? 'acknowledge' : undefined;
  const parsed = parseSubject(natsSubject);
  if (parsed === undefined) return undefined;
  if (parsed.verb !== 'ledger') return parsed.verb;
  if (parsed.rest[0] === 'use') return 'ledger.use';
  const { type } = JSON.parse(typeof payload === 'string' ? payload : Buffer.from(payload).toString('utf8')) as { type: string };
  return `ledger.${type}`;
};

const isTroubled = (arrow: string | undefined): boolean => arrow !== undefined && lots.below(1_000) < weather.troubledPerMille;

const LOST = { ok: false, error: { kind: 'timed_out', reason: 'the storm took it' } } as const;

const send: Send = Replies.prototype.send;
Replies.prototype.send = async function troubled(natsSubject, payload, headers, timeoutMs) {
  const sent = unguarded(weather.without, natsSubject, headers);
  const go = (): ReturnType<Send> => send.call(this, natsSubject, payload, sent, timeoutMs);
  const arrow = arrowOf(natsSubject, payload);
  return around(arrow, async () => {
    if (!isTroubled(arrow)) return go();
    switch (lots.one(TROUBLES)) {
      case 'drop':
        await pause(lots.below(DELAY_MS));
        return LOST;
      case 'lose answer':
        await go();
        return LOST;
      case 'duplicate':
        void go();
        return go();
      case 'delay before':
        await pause(lots.below(DELAY_MS));
        return go();
      case 'delay after': {
        const answer = await go();
        await pause(lots.below(DELAY_MS));
        return answer;
      }
    }
  });
};

const get = ToolRegistry.prototype.get;
ToolRegistry.prototype.get = function withEffect(name) {
  const handler = get.call(this, name);
  if (handler === undefined) return undefined;
  const invoke: typeof handler.invoke = (context, call, signal) =>
    around('effect', async () => {
      if (weather.effectMs !== undefined) await pause(weather.effectMs);
      return handler.invoke(context, call, weather.isDeaf === true ? new AbortController().signal : signal);
    });
  return { ...handler, invoke, definition: handler.definition };
};

// Before anybody loads them: their names are taken from their texts.
if (weather.without === 'epoch') await takeOutEpoch();
const { SCRIPTS } = await import('../../../libs/usage/src/redis-scripts.ts');
const TAKE = hash('sha1', SCRIPTS.take, 'hex');
const evalsha = Redis.prototype.evalsha as (...given: unknown[]) => Promise<unknown>;
Object.assign(Redis.prototype, {
  evalsha(this: Redis, script: unknown, ...given: unknown[]) {
    return around(script === TAKE ? 'counters.take' : undefined, () => evalsha.call(this, script, ...given));
  },
});
