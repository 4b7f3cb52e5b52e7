import { connectBus, streamInfo } from '@sharedos/bus';
import { connectSharedOS } from '@sharedos/client';
import { SERVICE_NAMES, type StreamName } from '@sharedos/contracts';
import type { LocalStack } from '@sharedos/testing';
import { answerOf, callsOf, submit, turnOf } from '../../support/many-turns.ts';
import { ALICE, NAMESPACE, type TestSystem, startTestSystem } from '../../support/test-system.ts';
import { type Finding } from '../finding.ts';
import { type Sample, judgeSoak } from './judge-soak.ts';

export interface SoakOptions {
  /** Ends after so many turns, or so many minutes: whichever is given. */
  readonly turns?: number;
  readonly minutes?: number;
  readonly onProgress?: (line: string) => void;
}

export interface SoakReport {
  readonly turns: number;
  readonly connections: number;
  readonly seconds: number;
  readonly findings: readonly Finding[];
  /** First and last of each thing that was measured. */
  readonly held: Readonly<Record<string, readonly [first: number, last: number]>>;
}

const AT_ONCE = 4;
/** Samples over a whole run. */
const SAMPLES = 30;
const TURNS_FOR_A_CLIENT = 10;
const STREAMS: readonly StreamName[] = ['TURNS', 'TURN_EVENTS', 'LEDGER', 'AUDIT', 'LOG'];
const ANSWER_MS = 10_000;

/** Runs turns over the whole system, by clients that come and go, and measures what its processes and the broker hold meanwhile. */
export const runSoak = async ({ turns, minutes, onProgress = () => undefined }: SoakOptions): Promise<SoakReport> => {
  const system = await startTestSystem({ env: () => ({ SHAREDOS_HEALTH_PORT: '0' }) });
  try {
    await system.letAliceRunScout();
    await system.grant('notes', { path: ['notes'], actions: ['read'] });
    await system.files(ALICE, { 'notes/plan.md': 'plan', 'private/diary.md': 'diary' });
    return await soaked(system, { ...(turns === undefined ? {} : { turns }), ...(minutes === undefined ? {} : { minutes }), onProgress });
  } finally {
    await system.stop();
  }
};

const soaked = async (system: TestSystem, { turns = Infinity, minutes, onProgress }: SoakOptions): Promise<SoakReport> => {
  const began = performance.now();
  const endsAt = minutes === undefined ? Infinity : began + minutes * 60_000;
  let [done, connections] = [0, 0];
  /** From 0 to 1. */
  const progress = (): number => Math.max(done / turns, minutes === undefined ? 0 : (performance.now() - began) / (minutes * 60_000));
  const unexpected: string[] = [];

  const comeAndGo = async (): Promise<void> => {
    while (done < turns && performance.now() < endsAt) {
      const { user, password } = system.stack.credentials.principal(NAMESPACE, ALICE);
      const alice = await connectSharedOS({ servers: system.stack.natsUrl, user, password, namespaceId: NAMESPACE, principal: ALICE });
      connections += 1;
      for (let turn = 0; turn < TURNS_FOR_A_CLIENT && done < turns && performance.now() < endsAt; turn += 1) {
        const calls = ['notes/plan.md', 'private/diary.md'].map((path) => ({ tool: 'files.read', arguments: { path: path.split('/') } }));
        const result = await answerOf(await submit(alice, turnOf({ calls })));
        done += 1;
        const said = callsOf(result).map(({ status }) => status);
        if (said.join() !== 'succeeded,denied') unexpected.push(`${result.executionId}: ${result.status} ${said.join()}`);
      }
      await alice.close();
    }
  };
  const traffic = Promise.all(Array.from({ length: AT_ONCE }, comeAndGo));

  const samples: Sample[] = [];
  const measure = await measuring(system.stack);
  let isOver = false;
  const over = traffic.finally(() => (isOver = true));
  for (let taken = 0; taken < SAMPLES; taken += 1) {
    while (!isOver && progress() < (taken + 1) / (SAMPLES + 1)) await new Promise((resolve) => setTimeout(resolve, 50));
    samples.push(...(await measure.take()));
    if (taken % 5 === 4) onProgress?.(`${Math.round(progress() * 100)} %: ${done} turns, ${connections} connections`);
  }
  await over;
  await measure.end();
  return {
    turns: done,
    connections,
    seconds: Math.round((performance.now() - began) / 1_000),
    findings: [{ rule: 'every turn is answered as it must be', contradictions: unexpected }, ...judgeSoak(samples)],
    held: Object.fromEntries(
      [...new Set(samples.map(({ of, what }) => `${what} of ${of}`))].map((name) => {
        const values = samples.filter(({ of, what }) => `${what} of ${of}` === name).map(({ value }) => value);
        return [name, [values[0] ?? 0, values.at(-1) ?? 0]];
      }),
    ),
  };
};

/** What the processes say of themselves in their metrics, and the broker of its streams. */
const measuring = async (stack: LocalStack) => {
  const { user, password, inboxPrefix } = stack.credentials.operator;
  const bus = await connectBus({ servers: stack.natsUrl, user, pass: password, inboxPrefix, name: 'soak' });
  const ports = stack.services().map((service) => {
    const [, port] = /"event":"ready".*"port":(\d+)/.exec(service.output()) ?? [];
    return { of: `${service.name} ${service.instance}`, port: Number(port) };
  });
  if (ports.length !== SERVICE_NAMES.length) throw new Error('not every service says where it is asked');
  const take = async (): Promise<readonly Sample[]> => {
    const held = await Promise.all(
      ports.map(async ({ of, port }): Promise<readonly Sample[]> => {
        const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
        const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
        return [
          { of, what: 'bytes', value: value('sharedos_process_resident_bytes') },
          { of, what: 'files', value: value('sharedos_process_open_files') },
        ];
      }),
    );
    const consumers = await Promise.all(
      STREAMS.map(async (stream): Promise<readonly Sample[]> => {
        const info = await streamInfo(bus, stream, { timeoutMs: ANSWER_MS });
        return info.ok ? [{ of: stream, what: 'consumers', value: info.value.state.consumer_count }] : [];
      }),
    );
    return [...held.flat(), ...consumers.flat()];
  };
  return { take, end: () => bus.close() };
};
