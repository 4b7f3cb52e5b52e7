import { setTimeout as pause } from 'node:timers/promises';
import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { type LocalStack, type ServiceProcess, waitFor } from '@sharedos/testing';
import type { Servers } from './servers.ts';
import type { Schedule } from './schedule.ts';
import { BLOW_EVENT, type Blow, type Fate, WEATHER_VARIABLE, type Weather } from './steps.ts';

/** The processes of the system under the storm: each is started with its fate, and another in its place when it met it. */
export interface Processes {
  /** Starts what the world is prepared with, and nothing strikes it. */
  begin(): Promise<void>;
  /** Starts everything else; from now on all that is started has its fate. */
  storm(): Promise<void>;
  /** Lets those go on that stand still until their turns are answered. */
  answered(): void;
  /** From now on nothing strikes: processes that something can still befall are replaced by such that nothing can. */
  calm(): Promise<void>;
  /** Nothing is started any more. */
  stop(): void;
  /** Fates that were met, in words. */
  readonly met: readonly string[];
  howFar(): string;
}

const REPLACED_MS = 240_000;
const START_AGAIN_MS = 200;
const FROZEN_MS = 6_000;
const OUTLIVES_MS = 3_000;
const INJECT = new URL('./inject.ts', import.meta.url).href;

interface BlowLine extends Fate {
  readonly event: typeof BLOW_EVENT;
  readonly pid: number;
}

export const processesOf = (stack: LocalStack, servers: Servers, schedule: Schedule, onLine: (line: string) => void): Processes => {
  const fates = Object.fromEntries(SERVICE_NAMES.map((service) => [service, [...schedule.fates[service]]])) as Record<ServiceName, Fate[]>;
  const met: string[] = [];
  /** Those that have a place, and what can still befall each. */
  const running = new Map<ServiceProcess, { fate?: Fate | undefined; readonly troubledPerMille: number }>();
  /** Those whose place somebody else took while they stand still. */
  const replaced = new Set<ServiceProcess>();
  let generation = 0;
  let isCalm = true;
  let isStopped = false;

  const start = async (service: ServiceName): Promise<void> => {
    const fate = isCalm ? undefined : fates[service].shift();
    const troubledPerMille = isCalm ? 0 : schedule.troubledPerMille;
    const { seed, without } = schedule.options;
    generation += 1;
    const weather: Weather = { seed: seed + generation, fate, troubledPerMille, without };
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
    running.set(started, { fate, troubledPerMille });
    void started.exited.then(() => {
      running.delete(started);
      if (!replaced.delete(started)) void keepUp(service);
    });
  };

  /** Tried again while a server is away, or the machine too busy: a service does not start without its broker. */
  const keepUp = async (service: ServiceName): Promise<void> => {
    while (!isStopped) {
      try {
        return await start(service);
      } catch (error) {
        onLine(`${service} did not start: ${error instanceof Error ? error.message : String(error)}`);
        await servers.up();
        await pause(START_AGAIN_MS);
      }
    }
  };

  const places = (services: readonly ServiceName[] = SERVICE_NAMES): number =>
    services.reduce((sum, service) => sum + schedule.replicas[service], 0);
  const fill = (services: readonly ServiceName[]): Promise<unknown> =>
    Promise.all(services.flatMap((service) => Array.from({ length: schedule.replicas[service] }, () => keepUp(service))));

  /** Kills them one after the other, so that somebody always answers, and waits each time until all places are taken again. */
  const replace = async (outgoing: readonly ServiceProcess[]): Promise<void> => {
    for (const process of outgoing) {
      await process.kill();
      await waitFor(`another ${process.name}`, () => running.size === places(), REPLACED_MS);
    }
  };

  /** Only one of ours, and only while it runs: its number may be another's by then. */
  const processOf = (pid: number): ServiceProcess | undefined => [...running.keys(), ...replaced].find((process) => process.pid === pid);

  const struck = (service: ServiceName, line: string): void => {
    if (!line.includes(BLOW_EVENT)) return;
    const { step, nth, blow, pid } = JSON.parse(line) as BlowLine;
    met.push(`${service}: ${blow}, ${step} (${nth})`);
    const process = processOf(pid);
    const weather = process === undefined ? undefined : running.get(process);
    if (weather !== undefined) weather.fate = undefined;
    const makeRoom = (): void => {
      if (blow === 'kill' || blow === 'freeze until answered') return;
      // Whoever outlived its fate makes room for the next one, after time enough to go on as if nothing had been.
      setTimeout(() => processOf(pid)?.kill(), blow === 'freeze' ? FROZEN_MS + OUTLIVES_MS : OUTLIVES_MS);
    };
    void strike(blow, pid)
      .catch((error: unknown) => onLine(`${blow} failed: ${error instanceof Error ? error.message : String(error)}`))
      .finally(makeRoom);
  };

  /** For one that stands still since it told its number, which is therefore still its own; it may not even be ready yet. */
  const signal = (pid: number, name: NodeJS.Signals): void => {
    try {
      process.kill(pid, name);
    } catch {
      // It was replaced meanwhile.
    }
  };

  /** It may come to its fate before it is known that it started. */
  const known = (pid: number): Promise<ServiceProcess> => waitFor(`process ${pid}`, () => processOf(pid), REPLACED_MS);

  const strike = async (blow: Blow, pid: number): Promise<void> => {
    switch (blow) {
      case 'kill':
        return;
      case 'freeze':
        setTimeout(() => signal(pid, 'SIGCONT'), FROZEN_MS);
        return;
      case 'freeze until answered': {
        const process = await known(pid);
        running.delete(process);
        replaced.add(process);
        return keepUp(process.name);
      }
      case 'wipe redis, then kill':
        await servers.wipeRedis();
        signal(pid, 'SIGKILL');
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

  const left = (): number => SERVICE_NAMES.reduce((sum, service) => sum + fates[service].length, 0);
  const others = SERVICE_NAMES.filter((service) => service !== 'authorizer');
  return {
    met,
    howFar: () => `${running.size} of ${places()} processes run, ${met.length} blows fell, ${left()} to come`,
    begin: () => fill(['authorizer']).then(() => undefined),
    storm: async () => {
      const calmOnes = [...running.keys()];
      isCalm = false;
      await fill(others);
      if (schedule.troubledPerMille > 0 || fates.authorizer.length > 0) await replace(calmOnes);
    },
    answered: () => {
      for (const process of replaced) process.resume();
    },
    calm: async () => {
      isCalm = true;
      await servers.up();
      // They end by themselves what they were about to do when they were stopped.
      for (const process of replaced) await process.stop();
      await waitFor('all places to be taken', () => running.size === places(), REPLACED_MS);
      await replace(
        [...running].filter(([, { fate, troubledPerMille }]) => fate !== undefined || troubledPerMille > 0).map(([process]) => process),
      );
    },
    stop: () => {
      isStopped = true;
    },
  };
};
