import { setTimeout as pause } from 'node:timers/promises';
import { type LocalStack, type ServiceProcess, waitFor } from '@sharedos/testing';
import { BLOW_EVENT, WEATHER_VARIABLE, type Weather } from '../turns/steps.ts';
import type { PlannedDeath } from './plan.ts';

const INJECT = new URL('../turns/inject.ts', import.meta.url).href;
const START_AGAIN_MS = 200;
/** Short, so that what a dead router held is soon somebody else's. */
const SEND_LEASE_MS = 4_000;
const STARTED_MS = 240_000;

/** Two routers that die again and again, each at the step that it is told of when it starts, and others in their places. */
export class DyingRouters {
  readonly met: string[] = [];
  readonly #stack: LocalStack;
  readonly #deaths: PlannedDeath[];
  readonly #onLine: (line: string) => void;
  readonly #running = new Map<ServiceProcess, PlannedDeath | undefined>();
  #calm = false;
  #stopped = false;

  constructor(stack: LocalStack, deaths: readonly PlannedDeath[], onLine: (line: string) => void) {
    this.#stack = stack;
    this.#deaths = [...deaths];
    this.#onLine = onLine;
  }

  async start(): Promise<void> {
    await Promise.all([this.#keepUp(), this.#keepUp()]);
  }

  /** From now on none dies: one that still could is stopped, and another takes its place. */
  async calm(): Promise<void> {
    this.#calm = true;
    await waitFor('two routers', () => this.#running.size === 2, STARTED_MS);
    for (const [router, death] of this.#running) {
      if (death === undefined) continue;
      await router.kill();
      await waitFor('another router', () => this.#running.size === 2 && !this.#running.has(router), STARTED_MS);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  get left(): number {
    return this.#deaths.length;
  }

  async #keepUp(): Promise<void> {
    while (!this.#stopped) {
      try {
        return await this.#startOne();
      } catch (error) {
        this.#onLine(`a router did not start: ${error instanceof Error ? error.message : String(error)}`);
        await pause(START_AGAIN_MS);
      }
    }
  }

  async #startOne(): Promise<void> {
    const death = this.#calm ? undefined : this.#deaths.shift();
    const fate = death === undefined ? undefined : { step: death.step as `before ${string}`, nth: death.nth, blow: 'kill' as const };
    const weather: Weather = { seed: 1, fate, troubledPerMille: 0 };
    const router = await this.#stack.startService('messaging-router', {
      env: {
        NODE_OPTIONS: `--import=${INJECT}`,
        [WEATHER_VARIABLE]: JSON.stringify(weather),
        SHAREDOS_SEND_LEASE_MS: String(SEND_LEASE_MS),
        SHAREDOS_GRACE_MS: '3000',
      },
      onLine: (line) => {
        this.#onLine(line);
        if (line.includes(BLOW_EVENT)) this.met.push(`${death?.step} (${death?.nth})`);
      },
    });
    this.#running.set(router, death);
    void router.exited.then(() => {
      this.#running.delete(router);
      void this.#keepUp();
    });
  }
}
