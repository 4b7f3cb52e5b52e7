import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readCases } from './runner/case.ts';
import { runCases } from './runner/run-cases.ts';

const USAGE = `usage: npm run conformance [-- [--cases DIR] [--json]]

  --cases DIR  run the cases of another folder, in the same format
  --json       print {cases, passed, failed: [{id, why}], skipped: [{id, reason}], differences}
`;

/** Runs a folder of cases against the embedded kernel; the exit code is 1 when any fails, 2 when they cannot be read. */
const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { cases: { type: 'string' }, json: { type: 'boolean', default: false }, help: { type: 'boolean' } },
  });
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const folders =
    values.cases === undefined ? [join(import.meta.dirname, 'cases'), join(import.meta.dirname, 'own-cases')] : [resolve(values.cases)];
  const report = await runCases(await readCases(...folders));
  if (values.json) {
    process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  } else {
    for (const { id, reason } of report.skipped) process.stdout.write(`not run  ${id}: ${reason}\n`);
    for (const { id, step, field, others, ours } of report.differences)
      process.stdout.write(`differs  ${id} ${step}.${field}: others say ${String(others)}, we say ${String(ours)}\n`);
    for (const { id, why } of report.failed) process.stdout.write(`FAILED   ${id}: ${why}\n`);
    const { cases, passed, failed, skipped } = report;
    process.stdout.write(`${cases} cases: ${passed} passed, ${failed.length} failed, ${skipped.length} not run\n`);
  }
  return report.failed.length === 0 ? 0 : 1;
};

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
  },
);
