import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Finding, findingLines } from '../finding.ts';
import { playNewEnemy } from './new-enemy.ts';
import { runMessages } from './run-messages.ts';

export const MESSAGES_USAGE = `usage: npm run faults -- messages [--messages N] [--seed N] [--log FILE] [--json]
       npm run faults -- messages-new-enemy [--rounds N] [--json]

Sends messages through two routers that are killed again and again, each at a step that follows from the seed, to recipients of which
half lease a route and are away now and then. Judged by the streams, and by what senders were told and recipients were handed: none
that was accepted is lost, none is handed again to a recipient that acknowledged it.

With messages-new-enemy, over three replicas of each service: what an agent was granted is revoked, and once that is acknowledged
another agent asks it by a message; the turn that this starts never uses it.

  --rounds N        how many rounds of that (default 1000)
  --messages N      how many messages (default 10000)
  --seed N          the same seed draws the same messages and deaths (default 1)
  --log FILE        keep what the routers print
  --json            one JSON document on standard output, progress on standard error
`;

const MESSAGES = 10_000;
const ROUNDS = 1_000;
const REPLICAS = 3;

const SCENES = ['messages', 'messages-new-enemy'] as const;
export const isMessagesScene = (name: string): boolean => SCENES.some((scene) => scene === name);

/** @returns What the process ends with: 0 when everything held, 1 when not, 2 when it was asked wrongly. */
export const messagesCommand = async (args: string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      messages: { type: 'string', default: String(MESSAGES) },
      rounds: { type: 'string', default: String(ROUNDS) },
      seed: { type: 'string', default: '1' },
      log: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [seed, messages, rounds] = [Number(values.seed), Number(values.messages), Number(values.rounds)];
  const isWrong =
    positionals.length !== 1 ||
    !Number.isSafeInteger(seed) ||
    ![messages, rounds].every((count) => Number.isSafeInteger(count) && count > 0);
  if (values.help || isWrong) {
    process.stderr.write(MESSAGES_USAGE);
    return values.help ? 0 : 2;
  }
  const onProgress = (line: string): void => void process.stderr.write(`${line}\n`);
  if (positionals[0] === 'messages-new-enemy') {
    const report = await playNewEnemy({ rounds, replicas: REPLICAS, onProgress });
    return told(report, values.json, `${rounds} rounds, ${report.seconds} s`);
  }
  const log = values.log === undefined ? undefined : createWriteStream(values.log);
  const report = await runMessages({ seed, messages }, { onProgress, onLine: (line) => void log?.write(`${line}\n`) });
  log?.end();
  const { accepted, parked, met, seconds } = report;
  return told(
    report,
    values.json,
    `seed ${seed}: ${accepted} of ${messages} accepted, ${parked} parked, ${met.length} routers killed, ${seconds} s`,
  );
};

/** Prints a report. @returns The exit code. */
const told = (report: { readonly findings: readonly Finding[]; readonly ok: boolean }, asJson: boolean, summary: string): number => {
  if (asJson) process.stdout.write(`${JSON.stringify(report)}\n`);
  else {
    for (const line of findingLines(report.findings)) process.stdout.write(`${line}\n`);
    process.stdout.write(`${summary}\n`);
  }
  return report.ok ? 0 : 1;
};
