import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** What specs said: all passed; a test failed, named; or they could not be run or did not end, which is told apart from both. */
export type SpecsOutcome =
  | { readonly outcome: 'passed'; readonly tests: number }
  | { readonly outcome: 'failed'; readonly test: string }
  | { readonly outcome: 'broken'; readonly why: string };

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Runs specs of a copy until the first that fails, and no longer than `timeoutMs`. */
export const runSpecs = async (folder: string, specs: readonly string[], timeoutMs: number): Promise<SpecsOutcome> => {
  const reportFile = join(folder, 'report.json');
  await rm(reportFile, { force: true });
  const vitest = join(folder, 'node_modules', 'vitest', 'vitest.mjs');
  const options = ['run', '--bail=1', '--maxWorkers=1', '--no-isolate', '--reporter=json', `--outputFile=${reportFile}`];
  const ended = await endOf(process.execPath, ['--preserve-symlinks-main', vitest, ...options, ...specs], folder, timeoutMs);
  if (ended === 'timeout') return { outcome: 'broken', why: `no end after ${timeoutMs} ms` };
  const text = await readFile(reportFile, 'utf8').catch(() => undefined);
  if (text === undefined) return { outcome: 'broken', why: 'vitest wrote no report' };
  const report = JSON.parse(text) as Report;
  for (const { name, status, message, assertionResults } of report.testResults) {
    const failed = assertionResults.find((each) => each.status === 'failed');
    if (failed !== undefined) return { outcome: 'failed', test: `${name.slice(folder.length + 1)}: ${failed.fullName}` };
    if (status === 'failed' && assertionResults.length === 0)
      return { outcome: 'broken', why: `${name.slice(folder.length + 1)} could not be loaded: ${message.split('\n')[0] ?? ''}` };
  }
  return report.numPassedTests > 0 ? { outcome: 'passed', tests: report.numPassedTests } : { outcome: 'broken', why: 'no test was run' };
};

const endOf = (program: string, args: readonly string[], cwd: string, timeoutMs: number): Promise<number | 'timeout'> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: 'ignore', detached: true });
    const deadline = setTimeout(() => {
      // The whole group: a worker that hangs would otherwise outlive its parent.
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      resolve('timeout');
    }, timeoutMs);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(deadline);
      resolve(code ?? 1);
    });
  });
