import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';
import { root, run } from './programs.mjs';

const STAMP = join(root, 'node_modules', '.sharedos-installed');
const HEARTBEAT_MS = 10_000;

/** Installs the packages of the lock when they are absent or the lock has changed since; otherwise costs one file read. */
export const installPackages = async () => {
  const lock = await readFile(join(root, 'package-lock.json'), 'utf8');
  const wanted = createHash('sha256').update(`${process.platform}-${process.arch}\n${lock}`).digest('hex');
  if ((await textOf(STAMP)) === wanted) return;
  if (!holds(JSON.parse(lock), await textOf(join(root, 'node_modules', '.package-lock.json')))) await install();
  await writeFile(STAMP, wanted);
};

const textOf = (file) => readFile(file, 'utf8').catch(() => undefined);

/**
 * Whether what npm says it installed is what the lock asks for. Somebody who ran `npm install` themselves has it already, and
 * wiping node_modules under their running programs would be a poor thank-you.
 */
export const holds = (lock, installedText) => {
  if (installedText === undefined) return false;
  const installed = JSON.parse(installedText).packages ?? {};
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (!path.startsWith('node_modules/') && !path.includes('/node_modules/')) return true;
    const found = installed[path];
    // An optional package of another platform is in the lock and not on the disk.
    if (found === undefined) return wanted.optional === true || wanted.devOptional === true;
    return found.version === wanted.version && found.integrity === wanted.integrity;
  });
};

const install = async () => {
  process.stderr.write('Installing packages (npm ci, about a minute the first time) …\n');
  const begun = Date.now();
  const heartbeat = setInterval(() => process.stderr.write(`  … ${Math.round((Date.now() - begun) / 1000)} s\n`), HEARTBEAT_MS);
  // No package of ours needs an install script, and none gets to run one.
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const code = await (existsSync(npmBeside()) ? run(process.execPath, [npmBeside(), ...args]) : run('npm', args)).finally(() =>
    clearInterval(heartbeat),
  );
  if (code !== 0) throw new Error('npm ci failed: the packages could not be installed (is the registry reachable?)');
  process.stderr.write(`Packages installed in ${Math.round((Date.now() - begun) / 1000)} s.\n`);
};

/** The npm that called us, or the one that came with this Node; `npm` on the PATH when neither is a file. */
const npmBeside = () =>
  process.env.npm_execpath ?? join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
