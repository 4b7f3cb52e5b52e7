import type { LocalStack, ServiceProcess } from '@sharedos/testing';
import { type TcpFront, openTcpFront } from '@sharedos/testing';
import { ANSWERS_EVENT, type Answers, WEATHER_VARIABLE, type Weather } from './weather.ts';

const INJECT = new URL('./inject.ts', import.meta.url).href;

/** What an authorizer is started with, beside what every one of the stack has. */
export interface Circumstances extends Omit<Weather, 'seed'> {
  /** How far its clock is ahead. */
  readonly clockOffsetMs: number;
  /** By when it answers that it could not find out. */
  readonly deadlineMs: number;
}

/** The ways of one authorizer to its servers, which can be interrupted without the servers. */
export interface OwnWays {
  readonly fronts: readonly TcpFront[];
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** How much each authorizer did, over all processes that it was. */
export class AnswerCounts {
  readonly #earlier = new Map<string, Answers>();
  readonly #present = new Map<string, Answers>();

  note(name: string, line: string): void {
    if (!line.includes(ANSWERS_EVENT)) return;
    const { opened, waited } = JSON.parse(line) as Answers;
    this.#present.set(name, { opened, waited });
  }

  /** Another process takes its place, and counts from zero. */
  again(name: string): void {
    this.#earlier.set(name, this.of(name));
    this.#present.delete(name);
  }

  of(name: string): Answers {
    const [earlier, present] = [this.#earlier.get(name), this.#present.get(name)];
    return { opened: (earlier?.opened ?? 0) + (present?.opened ?? 0), waited: (earlier?.waited ?? 0) + (present?.waited ?? 0) };
  }
}

/** Starts the authorizer that ships, in its weather. */
export const startAuthorizer = (
  stack: LocalStack,
  counts: AnswerCounts,
  seed: number,
  { clockOffsetMs, deadlineMs, lagMs, without }: Circumstances,
  { name, ways, onLine }: { readonly name: string; readonly ways?: OwnWays | undefined; readonly onLine: (line: string) => void },
): Promise<ServiceProcess> => {
  counts.again(name);
  const weather: Weather = { seed, lagMs, without };
  return stack.startService('authorizer', {
    env: {
      NODE_OPTIONS: `--import=${INJECT}`,
      [WEATHER_VARIABLE]: JSON.stringify(weather),
      SHAREDOS_CLOCK_OFFSET_MS: String(clockOffsetMs),
      SHAREDOS_DEADLINE_MS: String(deadlineMs),
      SHAREDOS_GRACE_MS: '2000',
      ...ways?.env,
    },
    onLine: (line) => {
      counts.note(name, line);
      onLine(line);
    },
  });
};

/** A way of its own to NATS and, where the log is on one that is ours, to EventStoreDB. */
export const waysOfItsOwn = async ({ natsUrl, eventStore }: LocalStack): Promise<OwnWays> => {
  const toNats = await openTcpFront(0, Number(new URL(natsUrl).port));
  const address = eventStore?.settings['SHAREDOS_EVENTSTORE_URL'] ?? '';
  const port = /^esdb:\/\/127\.0\.0\.1:(\d+)\?tls=false$/.exec(address)?.[1];
  const toLog = port === undefined ? undefined : await openTcpFront(0, Number(port));
  return {
    fronts: [toNats, ...(toLog === undefined ? [] : [toLog])],
    env: {
      SHAREDOS_NATS_URL: `nats://127.0.0.1:${toNats.port}`,
      ...(toLog === undefined ? {} : { SHAREDOS_EVENTSTORE_URL: `esdb://127.0.0.1:${toLog.port}?tls=false` }),
    },
    close: async () => {
      await toNats.close();
      await toLog?.close();
    },
  };
};
