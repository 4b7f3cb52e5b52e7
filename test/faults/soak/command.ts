import { parseArgs } from 'node:util';
import { allHold, findingLines } from '../finding.ts';
import { runSoak } from './run-soak.ts';

export const SOAK_USAGE = `usage: npm run faults -- soak [--minutes N] [--json]

Runs turns by clients that come and go, and holds the memory, the open files and the consumers of the last third against the middle.

  --minutes N       how long (default 30)
`;

const MINUTES = 30;

/** @returns The exit code: 0 when all is flat, 1 when something grows, 2 for wrong usage. */
export const soakCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: args.slice(1),
    options: { minutes: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  const minutes = Number(values.minutes ?? MINUTES);
  if (!(minutes > 0)) {
    process.stderr.write(SOAK_USAGE);
    return 2;
  }
  const report = await runSoak({ minutes, onProgress: (line) => process.stderr.write(`${line}\n`) });
  const { findings, held, turns, connections, seconds } = report;
  const lines = [
    ...Object.entries(held).map(([name, [first, last]]) => `${name}: ${first} → ${last}`),
    ...findingLines(findings),
    `soak: ${turns} turns, ${connections} connections, ${seconds} s`,
  ];
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : `${lines.join('\n')}\n`);
  return allHold(findings) ? 0 : 1;
};
