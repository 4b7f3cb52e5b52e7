import { execFile, spawn } from 'node:child_process';
import { constants, accessSync, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Programs of the local stack, as paths. */
export interface Servers {
  readonly nats: string;
  readonly redis: string;
}

/** A server is missing and cannot be installed here. The message is one line that says what to do. */
export class ServersMissing extends Error {
  override readonly name = 'ServersMissing';
}

export interface FindServersOptions {
  /** Called with one line for each thing that takes a while. */
  readonly onProgress?: (line: string) => void;
  /** Where to look; the process's own PATH when absent. */
  readonly path?: string;
  /** False only looks. Default true. */
  readonly install?: boolean;
}

const WANTED = {
  nats: { program: 'nats-server', package: 'nats-server', oldest: [2, 9, 10] },
  redis: { program: 'redis-server', package: 'redis-server', oldest: [7, 0, 0] },
} as const;
type Wanted = keyof typeof WANTED;

// Where packages put servers, for users whose PATH has no place for them.
const MORE_PLACES = ['/usr/local/bin', '/usr/local/sbin', '/usr/bin', '/usr/sbin', '/opt/homebrew/bin', '/home/linuxbrew/.linuxbrew/bin'];
const VERSION_TIMEOUT_MS = 5_000;
const INSTALL_TIMEOUT_MS = 300_000;

/**
 * Finds nats-server (2.9.10 or later) and redis-server (7.0 or later): on PATH, or installed on the spot with apt-get as root on
 * Debian and Ubuntu, or with Homebrew.
 *
 * Servers that already run somewhere are not used: the stack needs accounts of its own on NATS, and stops and wipes both.
 *
 * @throws ServersMissing with one line that says what to install.
 */
export const findServers = async (options: FindServersOptions = {}): Promise<Servers> => {
  const found = await look(options.path);
  const missing = missingOf(found);
  if (missing.length === 0) return complete(found);
  const names = missing.map((each) => WANTED[each].package);
  const installer = options.install === false ? undefined : installerFor(names, options.path);
  if (installer === undefined) throw new ServersMissing(advice(missing, found));
  options.onProgress?.(`installing ${names.join(' and ')} with ${installer[0]?.[0]} …`);
  for (const [command = '', ...args] of installer) {
    const failed = await run(command, args);
    if (failed !== undefined) throw new ServersMissing(`${advice(missing, found)} (${command} ${args[0]} failed: ${failed})`);
  }
  const now = await look(options.path);
  const still = missingOf(now);
  if (still.length > 0) throw new ServersMissing(advice(still, now));
  return complete(now);
};

/** A path that can be used, `undefined` when there is none, or the version that is too old. */
type Found = { readonly path: string } | { readonly tooOld: string } | undefined;

const look = async (path: string | undefined): Promise<Readonly<Record<Wanted, Found>>> => {
  const [nats, redis] = await Promise.all([locate('nats', path), locate('redis', path)]);
  return { nats, redis };
};

const missingOf = (found: Readonly<Record<Wanted, Found>>): readonly Wanted[] =>
  (['nats', 'redis'] as const).filter((each) => found[each] === undefined || 'tooOld' in found[each]);

const complete = (found: Readonly<Record<Wanted, Found>>): Servers => ({
  nats: (found.nats as { readonly path: string }).path,
  redis: (found.redis as { readonly path: string }).path,
});

const locate = async (wanted: Wanted, path: string | undefined): Promise<Found> => {
  let tooOld: Found;
  for (const candidate of programsNamed(WANTED[wanted].program, path)) {
    const version = await versionOf(candidate);
    if (version === undefined) continue;
    if (isAtLeast(version, WANTED[wanted].oldest)) return { path: candidate };
    tooOld ??= { tooOld: version };
  }
  return tooOld;
};

const programsNamed = (program: string, path: string | undefined): readonly string[] => {
  const places = path === undefined ? [...(process.env['PATH'] ?? '').split(delimiter), ...MORE_PLACES] : path.split(delimiter);
  return [...new Set(places.filter((place) => place !== '').map((place) => join(place, program)))].filter((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
};

const versionOf = (program: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile(program, ['--version'], { timeout: VERSION_TIMEOUT_MS }, (error, out) =>
      resolve(error === null ? /(\d+\.\d+\.\d+)/.exec(out)?.[1] : undefined),
    );
  });

/** Compares `major.minor.patch` with the oldest that will do. */
export const isAtLeast = (version: string, oldest: readonly number[]): boolean => {
  const parts = version.split('.').map(Number);
  for (const [place, least] of oldest.entries()) {
    const part = parts[place] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
};

const installerFor = (names: readonly string[], path: string | undefined): readonly (readonly string[])[] | undefined => {
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    return [
      ['apt-get', 'update', '-qq'],
      ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...names],
    ];
  }
  const brew = programsNamed('brew', path)[0];
  return brew === undefined ? undefined : [[brew, 'install', ...names.map((name) => (name === 'redis-server' ? 'redis' : name))]];
};

const run = (command: string, args: readonly string[]): Promise<string | undefined> =>
  new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      timeout: INSTALL_TIMEOUT_MS,
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-2_000);
    });
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code) => resolve(code === 0 ? undefined : said.trim().split('\n').at(-1) || `exit code ${code}`));
  });

const advice = (missing: readonly Wanted[], found: Readonly<Record<Wanted, Found>>): string =>
  `SharedOS needs ${missing
    .map((each) => {
      const state = found[each];
      const wanted = `${WANTED[each].program} ${WANTED[each].oldest.join('.')} or later`;
      return state !== undefined && 'tooOld' in state ? `${wanted} (found ${state.tooOld})` : wanted;
    })
    .join(
      ' and ',
    )} on PATH: as root, apt-get install ${missing.map((each) => WANTED[each].package).join(' ')}; or with Homebrew, brew install ${missing
    .map((each) => (each === 'redis' ? 'redis' : 'nats-server'))
    .join(' ')}`;
