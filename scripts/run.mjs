// One door to everything `npm run` offers. It must start on a bare clone: Node 20 and no node_modules, so it is plain JavaScript
// and imports nothing but Node and its neighbours, which keep the same rule.
import { installPackages } from './install.mjs';
import { node24, run } from './programs.mjs';
import { check, test } from './checks.mjs';

const PROGRAMS = {
  demo: 'libs/cli/src/demo.ts',
  bench: 'test/bench/bench.ts',
  conformance: 'test/conformance/run.ts',
  faults: 'test/faults/run.ts',
  schemas: 'scripts/generate-schemas.ts',
  docs: 'scripts/generate-docs.ts',
  'test:containers': 'deploy/containers/run.ts',
  fuzz: 'scripts/fuzz.ts',
  mutate: 'scripts/mutate.ts',
};

const USAGE = `usage: node scripts/run.mjs <command> [arguments]

  demo      start the system, run real turns and show what was allowed, refused and recorded
  test      types, lint, format, schemas and every test
  test:containers  start the compose files, and run turns over them
  check     types, lint (with the import direction) and format
  bench     measure against the floors of this machine
  conformance  run the cases of test/conformance, or of another folder: --cases DIR, --json
  faults    kill, freeze and wipe everything under running turns, and judge by the logs: turns [--seed N] [--turns N]
  schemas   write schemas/ anew from libs/contracts
  format    format the sources
  docs      write the generated pages of docs/ anew
  fuzz      hold the rules to a million small worlds, or the contracts to hostile documents
  mutate    break the rules one at a time, in a copy, and see that a test says so
`;

const main = async ([command, ...rest]) => {
  if (command === undefined || !(command in PROGRAMS || ['test', 'check', 'format'].includes(command))) {
    process.stderr.write(USAGE);
    return command === '--help' ? 0 : 2;
  }
  await installPackages();
  if (command === 'test') return test(rest);
  if (command === 'check') return check();
  if (command === 'format') return run('oxfmt', rest);
  return run(await node24(), [PROGRAMS[command], ...rest]);
};

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  },
);
