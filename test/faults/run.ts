import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { GUARDS, type Guard } from './turns/steps.ts';
import { runStorm } from './turns/storm.ts';

const USAGE = `usage: npm run faults -- turns|killed-after-effect [--seed N] [--turns N] [--without GUARD] [--log FILE] [--json]

Runs turns over real processes and servers while these are killed, frozen, wiped and rolled back at steps that follow from the
seed, and messages are dropped, delayed and sent twice; then judges by the logs alone. With killed-after-effect, one executor dies
for each turn, right after its effect and before that is on record.

  --seed N          the same seed makes the same schedule (default 1)
  --turns N         how many turns (default 2000; 209 for killed-after-effect)
  --without GUARD   take out fence, claim or epoch, and see the run fail
  --log FILE        keep what the services print
  --json            one JSON document on standard output, progress on standard error
`;

const DEFAULT_TURNS = { turns: 2_000, 'killed-after-effect': 209 } as const;
const isKind = (name: string): name is keyof typeof DEFAULT_TURNS => name in DEFAULT_TURNS;

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string', default: '1' },
      turns: { type: 'string' },
      without: { type: 'string' },
      json: { type: 'boolean', default: false },
      log: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [kind = ''] = positionals;
  const turns = Number(values.turns ?? DEFAULT_TURNS[kind as keyof typeof DEFAULT_TURNS]);
  const seed = Number(values.seed);
  const without = GUARDS.find((guard): guard is Guard => guard === values.without);
  const isWrong = positionals.length !== 1 || !isKind(kind) || !Number.isSafeInteger(seed) || !Number.isSafeInteger(turns) || turns < 1;
  if (values.help || isWrong || !isKind(kind) || (values.without !== undefined && without === undefined)) {
    process.stderr.write(USAGE);
    return values.help ? 0 : 2;
  }
  const log = values.log === undefined ? undefined : createWriteStream(values.log);
  const report = await runStorm(
    { kind, seed, turns, without },
    { onProgress: (line) => process.stderr.write(`${line}\n`), onLine: (line) => void log?.write(`${line}\n`) },
  );
  log?.end();
  if (values.json) {
    process.stdout.write(`${JSON.stringify(report)}\n`);
  } else {
    for (const { rule, contradictions } of report.findings) {
      process.stdout.write(`${contradictions.length === 0 ? 'ok  ' : 'FAIL'} ${rule}\n`);
      for (const contradiction of contradictions.slice(0, 10)) process.stdout.write(`       ${contradiction}\n`);
    }
    for (const [outcome, times] of Object.entries(report.outcomes)) process.stdout.write(`     ${times} × ${outcome}\n`);
    process.stdout.write(
      `${report.accepted} turns, ${report.effects} effects, ${report.uses} uses, ${report.blows.length} blows, ${report.seconds} s\n`,
    );
  }
  return report.ok ? 0 : 1;
};

process.exitCode = await main();
