import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countReport } from './count.mjs';
import { checkPackages } from './packages.mjs';
import { node24, run } from './programs.mjs';

const say = (text) => process.stdout.write(`${text}\n`);

const types = { name: 'types', remedy: 'tsc names each error', run: () => run('tsc', ['-p', 'tsconfig.json']) };
const lint = {
  name: 'lint',
  remedy: 'oxlint names each line; the import direction is in .oxlintrc.json',
  run: () => run('oxlint', ['--deny-warnings']),
};
const format = { name: 'format', remedy: 'npm run format', run: () => run('oxfmt', ['--check']) };
const schemas = {
  name: 'schemas',
  remedy: 'npm run schemas',
  run: async () => run(await node24(), ['scripts/generate-schemas.ts', '--check']),
};

const packages = {
  name: 'packages',
  remedy: 'each line names a package; licences that were judged are in scripts/packages.mjs',
  run: () => checkPackages(say),
};

/** Runs each check, whatever the one before it said, and answers how many passed and failed. */
const runChecks = async (checks) => {
  let failed = 0;
  for (const { name, remedy, run: runCheck } of checks) {
    say(`\n── ${name}`);
    const code = await runCheck();
    if (code !== 0) failed += 1;
    say(code === 0 ? `✓ ${name}` : `✗ ${name}: ${remedy}`);
  }
  return { passed: checks.length - failed, failed };
};

export const check = async () => {
  const { failed } = await runChecks([types, lint, format, packages]);
  return failed === 0 ? 0 : 1;
};

/**
 * Everything, ended by one line `N passed, N failed`: each check counts as one, and so does each test.
 *
 * The servers are found or installed first, so that the wait is shown and happens once. A machine that cannot have them goes on:
 * the tests that need one fail, and say why.
 */
export const test = async (filters) => {
  say('── servers');
  await run(await node24(), ['scripts/ensure-servers.ts']);
  const checks = await runChecks([types, lint, format, schemas, packages]);
  say('\n── tests');
  const tests = await runTests(filters);
  for (const name of tests.skipped) say(`not run: ${name}`);
  for (const file of tests.unloaded) say(`could not be loaded: ${file}`);
  const [passed, failed] = [checks.passed + tests.passed, checks.failed + tests.failed];
  say(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
};

const runTests = async (filters) => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-test-'));
  try {
    const file = join(folder, 'report.json');
    const code = await run('vitest', ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${file}`, ...filters]);
    const text = await readFile(file, 'utf8').catch(() => undefined);
    return countReport(text === undefined ? undefined : JSON.parse(text), code);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
