import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const bin = join(root, 'node_modules', '.bin');

/** The environment of everything we start: the Node of the lock comes first, whatever the machine has. */
export const environment = () => ({ ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` });

/**
 * Starts a program of node_modules (by name) or of the machine (by path), shows what it prints, and answers its exit code.
 * Ctrl-C reaches the whole terminal group by itself; a signal sent to us alone is passed on, so no child outlives us.
 */
export const run = (program, args, { quiet = false } = {}) =>
  new Promise((resolve, reject) => {
    const command = !program.includes('/') && existsSync(join(bin, program)) ? join(bin, program) : program;
    const child = spawn(command, args, {
      cwd: root,
      env: environment(),
      stdio: ['inherit', quiet ? 'ignore' : 'inherit', quiet ? 'ignore' : 'inherit'],
    });
    const pass = (signal) => child.kill(signal);
    const stayForChild = () => undefined;
    process.on('SIGTERM', pass);
    process.on('SIGHUP', pass);
    process.on('SIGINT', stayForChild);
    const settle = () => {
      process.off('SIGTERM', pass);
      process.off('SIGHUP', pass);
      process.off('SIGINT', stayForChild);
    };
    child.once('error', (error) => {
      settle();
      reject(new Error(`could not start ${program}: ${error.message}`));
    });
    child.once('close', (code, signal) => {
      settle();
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });

/** Types are stripped without a flag from this version on. */
const STRIPS_TYPES = [22, 18];

/** The Node to run sources on: the one of the lock, or the current one on a platform the lock has none for. */
export const node24 = async () => {
  const locked = join(bin, process.platform === 'win32' ? 'node.cmd' : 'node');
  if (existsSync(locked) && (await run(locked, ['--version'], { quiet: true }).catch(() => 1)) === 0) return locked;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > STRIPS_TYPES[0] || (major === STRIPS_TYPES[0] && minor >= STRIPS_TYPES[1])) return process.execPath;
  throw new Error(
    `SharedOS runs on Node ${STRIPS_TYPES.join('.')} or newer, this is ${process.versions.node} and there is no packaged Node for ${process.platform}-${process.arch}: install Node 24.`,
  );
};
