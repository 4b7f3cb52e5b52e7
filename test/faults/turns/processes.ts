import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { type LocalStack, type ServiceProcess, waitFor } from '@sharedos/testing';
import type { Servers } from './servers.ts';
import type { Schedule } from './schedule.ts';
import { BLOW_EVENT, type Blow, type Fate, WEATHER_VARIABLE, type Weather } from './steps.ts';

/** The processes of the system under the storm: each is started with its fate, and another in its place when it met it. */
export interface Processes {
  /** Fates that were met, in words. */
  readonly met: readonly string[];
  /** Fates that no process has met yet. */
  left(): number;
  /** From now on nothing strikes: processes that still have a fate are replaced by such that have none. */
  calm(): Promise<void>;
}

const REPLICAS: Readonly<Record<ServiceName, number>> = {
  authorizer: 2,
  'tool-executor': 2,
  'messaging-router': 1,
  'audit-projector': 1,
};
const PLACES = Object.values(REPLICAS).reduce((sum, count) => sum + count, 0);
const REPLACED_MS = 60_000;
const FROZEN_MS = 6_000;
const OUTLIVES_MS = 3_000;
const INJECT = new URL('./inject.ts', import.meta.url).href;

interface BlowLine extends Fate {
  readonly event: typeof BLOW_EVENT;
  readonly pid: number;
}

/** @param prepare Done while the processes are up and before anything strikes them. */
export const startProcesses = async (
  stack: LocalStack,
  servers: Servers,
  schedule: Schedule,
  prepare: () => Promise<void>,
  onLine: (line: string) => void,
): Promise<Processes> => {
  const fates = Object.fromEntries(SERVICE_NAMES.map((service) => [service, [...schedule.fates[service]]])) as Record<ServiceName, Fate[]>;
  const met: string[] = [];
  const running = new Map<ServiceProcess, Fate | undefined>();
  let generation = 0;
  let isCalm = true;
  const stopping = false;

  const start = async (service: ServiceName): Promise<void> => {
    const fate = isCalm ? undefined : fates[service].shift();
    generation += 1;
    const weather: Weather = {
      seed: schedule.options.seed + generation,
      fate,
      troubledPerMille: isCalm ? 0 : schedule.troubledPerMille,
      without: schedule.options.without,
    };
    const started = await stack.startService(service, {
      env: {
        NODE_OPTIONS: `--import=${INJECT}`,
        [WEATHER_VARIABLE]: JSON.stringify(weather),
        SHAREDOS_GRACE_MS: '3000',
        SHAREDOS_TURNS_AT_ONCE: String(schedule.turnsAtOnce),
      },
      onLine: (line) => {
        onLine(line);
        struck(service, line);
      },
    });
    running.set(started, fate);
    void started.exited.then(() => {
      running.delete(started);
      if (!stopping) void keepUp(service);
    });
  };

  /** Tried again while a server is away: a service does not start without its broker. */
  const keepUp = async (service: ServiceName): Promise<void> => {
    for (let attempt = 0; attempt < 20 && !stopping; attempt += 1) {
      try {
        return await start(service);
      } catch {
        await servers.up();
      }
    }
  };

  /** Kills every process, one after the other so that somebody always answers, and waits until all places are taken again. */
  const replaceAll = async (): Promise<void> => {
    for (const process of [...running.keys()]) {
      await process.kill();
      await waitFor(`another ${process.name}`, () => running.size === PLACES, REPLACED_MS);
    }
  };

  /** Only one of ours, and only while it runs: its number may be another's by then. */
  const processOf = (pid: number): ServiceProcess | undefined => [...running.keys()].find((process) => process.pid === pid);

  const struck = (service: ServiceName, line: string): void => {
    if (!line.includes(BLOW_EVENT)) return;
    const { step, nth, blow, pid } = JSON.parse(line) as BlowLine;
    met.push(`${service}: ${blow}, ${step} (${nth})`);
    for (const [process, fate] of running) if (process.pid === pid && fate?.step === step) running.set(process, undefined);
    void strike(blow, pid).finally(() => {
      // Whoever outlived its fate makes room for the next one, after time enough to go on as if nothing had been.
      const lived = blow === 'freeze' ? FROZEN_MS + OUTLIVES_MS : OUTLIVES_MS;
      if (blow !== 'kill') setTimeout(() => processOf(pid)?.kill(), lived);
    });
  };

  const strike = async (blow: Blow, pid: number): Promise<void> => {
    switch (blow) {
      case 'kill':
        return;
      case 'freeze':
        setTimeout(() => processOf(pid)?.resume(), FROZEN_MS);
        return;
      case 'wipe redis, then kill':
        await servers.wipeRedis();
        await processOf(pid)?.kill();
        return;
      case 'kill nats':
        return servers.killNats();
      case 'kill redis':
        return servers.killRedis();
      case 'wipe redis':
        return servers.wipeRedis();
      case 'roll redis back':
        return servers.rollRedisBack();
    }
  };

  await Promise.all(SERVICE_NAMES.flatMap((service) => Array.from({ length: REPLICAS[service] }, () => start(service))));
  await prepare();
  isCalm = false;
  await replaceAll();
  return {
    met,
    left: () => SERVICE_NAMES.reduce((left, service) => left + fates[service].length, 0),
    calm: async () => {
      isCalm = true;
      await servers.up();
      await replaceAll();
    },
  };
};
