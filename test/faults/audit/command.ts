import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { findingLines } from '../finding.ts';
import { runAuditStorm } from './storm.ts';

export const AUDIT_USAGE = `usage: npm run faults -- audit [--events N] [--drops N] [--kills N] [--log FILE] [--json]

Twenty write audit records at once, straight and by the ledger, while two projectors lose their connections and are killed and the
broker is restarted. Then a third projector is built from the beginning, and what all three hold is judged.

  --events N        records to be written (default 10000)
  --drops N         connections to be dropped (default 50)
  --kills N         projectors to be killed (default 6)
  --log FILE        keep what the projectors print
  --json            one JSON document on standard output, progress on standard error
`;

/** @returns What the process ends with: 0 when everything held, 1 when not, 2 when it was asked wrongly. */
export const auditCommand = async (args: string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      events: { type: 'string', default: '10000' },
      drops: { type: 'string', default: '50' },
      kills: { type: 'string', default: '6' },
      log: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [events, drops, kills] = [Number(values.events), Number(values.drops), Number(values.kills)];
  const isWrong = positionals.length !== 1 || ![events, drops, kills].every((count) => Number.isSafeInteger(count) && count >= 1);
  if (values.help || isWrong) {
    process.stderr.write(AUDIT_USAGE);
    return values.help ? 0 : 2;
  }
  const log = values.log === undefined ? undefined : createWriteStream(values.log);
  const report = await runAuditStorm(
    { events, drops, kills },
    { onProgress: (line) => process.stderr.write(`${line}\n`), onLine: (line) => void log?.write(`${line}\n`) },
  );
  log?.end();
  if (values.json) {
    process.stdout.write(`${JSON.stringify(report)}\n`);
    return report.ok ? 0 : 1;
  }
  for (const line of findingLines(report.findings)) process.stdout.write(`${line}\n`);
  process.stdout.write(
    `${report.events} records, ${report.stored} stored, ${report.drops} connections dropped, ${report.kills} projectors killed, ` +
      `${report.flips} bits flipped, ${report.seconds} s\n`,
  );
  return report.ok ? 0 : 1;
};
