import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { AUDIT_USAGE, auditCommand } from './audit/command.ts';
import { STORM_KINDS, type StormKind } from './turns/schedule.ts';
import { GRANTS_USAGE, grantsCommand, isGrantsScene } from './grants/command.ts';
import { MESSAGES_USAGE, isMessagesScene, messagesCommand } from './messages/command.ts';
import { SOAK_USAGE, soakCommand } from './soak/command.ts';
import { GUARDS, type Guard } from './turns/steps.ts';
import { type StormReport, runStorm } from './turns/storm.ts';

const USAGE = `usage: npm run faults -- KIND [--seed N] [--turns N] [--without GUARD] [--log FILE] [--json]

Runs turns over real processes and servers while these are killed, frozen, wiped and rolled back, and messages are dropped, delayed
and sent twice; then judges by the logs alone. Exit code 0 when every rule holds, 1 when one is broken, 2 for wrong usage.

  turns                  anything, at steps that follow from the seed
  killed-after-effect    one executor dies for each turn, right after its effect and before that is on record
  taken-for-dead         an executor stands still before it admits a call, until its turn was ended and answered (guard: fence)
  counters-rolled-back   Redis goes back to two uses ago, with its epoch (guard: claim)
  counters-forgotten     Redis forgets a claimed use, whose owner dies before it admits anything on it (guard: epoch)

  --seed N          the same seed makes the same schedule (default 1)
  --turns N         how many turns (default 2000 for turns, 209 for killed-after-effect)
  --without GUARD   take out fence, claim or epoch, and see the run fail
  --log FILE        keep what the services print
  --json            one JSON document on standard output, progress on standard error
`;

const DEFAULT_TURNS: Readonly<Partial<Record<StormKind, number>>> = { turns: 2_000, 'killed-after-effect': 209 };
const SHOWN = 10;

const table = ({ findings, outcomes, ...report }: StormReport): string => {
  const rows = findings.flatMap(({ rule, contradictions }) => [
    `${contradictions.length === 0 ? 'ok  ' : 'FAIL'} ${rule}${contradictions.length === 0 ? '' : `: ${contradictions.length} times not`}`,
    ...contradictions.slice(0, SHOWN).map((contradiction) => `       ${contradiction}`),
  ]);
  const ends = Object.entries(outcomes).map(([outcome, times]) => `${String(times).padStart(9)} × ${outcome}`);
  const { kind, seed, without, schedule, accepted, turns, effects, uses, blows, seconds } = report;
  return [
    ...ends,
    ...rows,
    `${kind}, seed ${seed}, schedule ${schedule.slice(0, 12)}${without === undefined ? '' : `, without ${without}`}: ` +
      `${accepted} of ${turns} turns, ${effects} effects, ${uses} uses, ${blows.length} blows, ${seconds} s`,
    '',
  ].join('\n');
};

const main = async (): Promise<number> => {
  const args = process.argv.slice(2);
  if (args.some(isGrantsScene)) return grantsCommand(args);
  if (args.some(isMessagesScene)) return messagesCommand(args);
  if (args[0] === 'audit') return auditCommand(args);
  if (args[0] === 'soak') return soakCommand(args);
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
  const kind = STORM_KINDS.find((name) => name === positionals[0]);
  const turns = Number(values.turns ?? (kind === undefined ? 1 : (DEFAULT_TURNS[kind] ?? 1)));
  const seed = Number(values.seed);
  const without = GUARDS.find((guard): guard is Guard => guard === values.without);
  const isWrong = positionals.length !== 1 || !Number.isSafeInteger(seed) || !Number.isSafeInteger(turns) || turns < 1;
  if (values.help || isWrong || kind === undefined || (values.without !== undefined && without === undefined)) {
    process.stderr.write(`${USAGE}\n${GRANTS_USAGE}\n${MESSAGES_USAGE}\n${AUDIT_USAGE}\n${SOAK_USAGE}`);
    return values.help ? 0 : 2;
  }
  const log = values.log === undefined ? undefined : createWriteStream(values.log);
  const report = await runStorm(
    { kind, seed, turns, without },
    { onProgress: (line) => process.stderr.write(`${line}\n`), onLine: (line) => void log?.write(`${line}\n`) },
  );
  log?.end();
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : table(report));
  return report.ok ? 0 : 1;
};

process.exitCode = await main();
