// Loaded into an authorizer's own process before the service itself: the service is the one that ships, unchanged. What is delayed is
// what it hears of the log; what may be taken out is the question how far the log reaches.
import { ok } from '@sharedos/contracts';
import type { EventStore, LogListener } from '@sharedos/event-store';
import { AuthorityFold } from '../../../services/authorizer/src/fold/authority-fold.ts';
import { TurnTokens } from '../../../services/authorizer/src/turns/turn-token.ts';
import { lotsFrom } from '../turns/lots.ts';
import { ANSWERS_EVENT, type Answers, WEATHER_VARIABLE, type Weather } from './weather.ts';

const TELL_MS = 200;

const weather = JSON.parse(process.env[WEATHER_VARIABLE] ?? '{"seed":0,"lagMs":0}') as Weather;
const lots = lotsFrom(weather.seed);
const answers: { -readonly [Name in keyof Answers]: Answers[Name] } = { opened: 0, waited: 0 };

/** Tells the listener everything in its order, each thing as late as its lot says. */
const delayed = (listener: LogListener): LogListener => {
  const held: { readonly due: number; readonly tell: () => void }[] = [];
  let timer: NodeJS.Timeout | undefined;
  const tellDue = (): void => {
    timer = undefined;
    while (held[0] !== undefined && held[0].due <= performance.now()) held.shift()?.tell();
    if (held[0] !== undefined) timer = setTimeout(tellDue, held[0].due - performance.now());
  };
  const later = (tell: () => void): void => {
    held.push({ due: performance.now() + lots.below(weather.lagMs), tell });
    timer ??= setTimeout(tellDue, Math.max(0, (held[0]?.due ?? 0) - performance.now()));
  };
  return {
    alive: (isAlive) => listener.alive(isAlive),
    event: (recorded) => later(() => listener.event(recorded)),
    parked: (parked) => later(() => listener.parked(parked)),
    reached: (position) => later(() => listener.reached(position)),
  };
};

const follow = AuthorityFold.prototype.follow;
AuthorityFold.prototype.follow = function late(store) {
  // The very store that opens ask, so that without its barrier they are as the replica happens to stand.
  if (weather.without === 'barrier') (store as { barrier: EventStore['barrier'] }).barrier = async () => ok(this.position);
  const subscribe: EventStore['subscribe'] = (from, listener) => store.subscribe(from, weather.lagMs > 0 ? delayed(listener) : listener);
  follow.call(this, { ...store, subscribe });
};

const until = AuthorityFold.prototype.until;
AuthorityFold.prototype.until = function counted(position, deadlineMs) {
  if (this.position < position) answers.waited += 1;
  return until.call(this, position, deadlineMs);
};

const sign = TurnTokens.prototype.sign;
TurnTokens.prototype.sign = function counted(claims) {
  answers.opened += 1;
  return sign.call(this, claims);
};

let told = '';
setInterval(() => {
  const line = JSON.stringify({ event: ANSWERS_EVENT, ...answers });
  if (line !== told) process.stdout.write(`${line}\n`);
  told = line;
}, TELL_MS).unref();
