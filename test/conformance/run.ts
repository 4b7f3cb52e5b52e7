import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type CaseFolder, readCases } from './runner/case.ts';
import { type Report, runCases } from './runner/run-cases.ts';
import { servicesTarget } from './services/target.ts';

const USAGE = `usage: npm run conformance [-- [--target embedded|services] [--cases DIR] [--json]]

  --target embedded  run them in this process: the kernel, and the envelope over it (the default)
  --target services  run them over authorizer, tool-executor and messaging-router on a nats-server and a redis-server started for it, and compare
                     each answer with the one in process; a case that cannot run there is named with its reason
  --cases DIR        run the cases of another folder, in the same format
  --json             print {target, cases, passed, failed: [{id, why}], skipped: [{id, reason}], differences}

Exit codes: 0 all that ran passed, 1 one failed, 2 the cases cannot be read or the servers cannot be started.
`;

/** Runs a folder of cases; the exit code is 1 when any fails, 2 when they cannot be run at all. */
const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: {
      target: { type: 'string', default: 'embedded' },
      cases: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (values.target !== 'embedded' && values.target !== 'services')
    throw new Error(`no target is called ${values.target}: embedded or services`);
  const folders =
    values.cases === undefined ? [join(import.meta.dirname, 'cases'), join(import.meta.dirname, 'own-cases')] : [resolve(values.cases)];
  const folder = await readCases(...folders);
  const report = await (values.target === 'services' ? runOverServices(folder) : runCases(folder));
  if (values.json) {
    process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  } else {
    for (const { id, reason } of report.skipped) process.stdout.write(`not run  ${id}: ${reason}\n`);
    for (const { id, step, field, others, ours } of report.differences)
      process.stdout.write(`differs  ${id} ${step}.${field}: others say ${String(others)}, we say ${String(ours)}\n`);
    for (const { id, why } of report.failed) process.stdout.write(`FAILED   ${id}: ${why}\n`);
    const { cases, passed, failed, skipped } = report;
    process.stdout.write(
      `${cases} cases, ${report.target === 'services' ? 'over the services' : 'in process'}: ` +
        `${passed} passed, ${failed.length} failed, ${skipped.length} not run\n`,
    );
  }
  return report.failed.length === 0 ? 0 : 1;
};

const runOverServices = async (folder: CaseFolder): Promise<Report> => {
  // On standard error: with --json, standard output is one document.
  process.stderr.write('starting nats-server, redis-server and the services …\n');
  const services = await servicesTarget(folder.cases);
  try {
    process.stderr.write(`running ${folder.cases.length} cases …\n`);
    return await runCases(folder, services);
  } finally {
    await services.stop();
  }
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
