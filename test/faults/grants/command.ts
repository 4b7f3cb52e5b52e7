import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { findingLines } from '../finding.ts';
import { SCENES, type SceneName, runGrants } from './run-grants.ts';
import { GUARDS } from './weather.ts';

export const GRANTS_USAGE = `usage: npm run faults -- grants|grants-outages|grants-cluster [--store jetstream|eventstoredb] [--rounds N] [--seed N]
                          [--without barrier] [--log FILE] [--json]

Rounds of: issue a grant, open a turn, revoke, open a turn. Every turn that was opened is judged by the log alone when all is over.
With grants, over three authorizers: one hears the log late, one is always just started, one loses its connections. With
grants-outages, while the store of the log is killed, restarted, frozen, slow and cut off. With grants-cluster, over three brokers
whose leader is cut off from the others.

  --store NAME      what the log is on (default jetstream; grants-cluster knows no other)
  --rounds N        how many rounds (default 10000; 500 for the other two)
  --without GUARD   take out the barrier, and see the run fail
  --seed N          the same seed draws the same troubles (default 1)
  --log FILE        keep what the authorizers print
  --json            one JSON document on standard output, progress on standard error
`;

const DEFAULT_ROUNDS: Readonly<Record<SceneName, number>> = { grants: 10_000, 'grants-outages': 500, 'grants-cluster': 500 };
const STORES = ['jetstream', 'eventstoredb'] as const;

export const isGrantsScene = (name: string | undefined): name is SceneName => name !== undefined && Object.hasOwn(SCENES, name);

/** @returns What the process ends with: 0 when everything held, 1 when not, 2 when it was asked wrongly. */
export const grantsCommand = async (args: string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      store: { type: 'string', default: 'jetstream' },
      rounds: { type: 'string' },
      seed: { type: 'string', default: '1' },
      without: { type: 'string' },
      log: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [scene] = positionals;
  const seed = Number(values.seed);
  const store = STORES.find((name) => name === values.store);
  const without = GUARDS.find((guard) => guard === values.without);
  const rounds = Number(values.rounds ?? (isGrantsScene(scene) ? DEFAULT_ROUNDS[scene] : 0));
  const isWrong =
    positionals.length !== 1 ||
    !Number.isSafeInteger(seed) ||
    !Number.isSafeInteger(rounds) ||
    rounds < 1 ||
    (values.without !== undefined && without === undefined);
  if (values.help || isWrong || store === undefined || !isGrantsScene(scene) || (scene === 'grants-cluster' && store !== 'jetstream')) {
    process.stderr.write(GRANTS_USAGE);
    return values.help ? 0 : 2;
  }
  const log = values.log === undefined ? undefined : createWriteStream(values.log);
  const report = await runGrants(
    { scene, store, seed, rounds, without },
    { onProgress: (line) => process.stderr.write(`${line}\n`), onLine: (line) => void log?.write(`${line}\n`) },
  );
  log?.end();
  if (values.json) {
    process.stdout.write(`${JSON.stringify(report)}\n`);
    return report.ok ? 0 : 1;
  }
  for (const line of findingLines(report.findings)) process.stdout.write(`${line}\n`);
  for (const [name, { opened, waited }] of Object.entries(report.answers))
    process.stdout.write(`     ${name}: opened ${opened} turns, and waited ${waited} times for the log\n`);
  for (const [what, times] of Object.entries({ ...report.blows, ...report.unavailable })) process.stdout.write(`     ${times} × ${what}\n`);
  process.stdout.write(`${report.played} rounds on ${report.log}, ${report.opened} turns opened, ${report.seconds} s\n`);
  return report.ok ? 0 : 1;
};
