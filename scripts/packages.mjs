import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { environment, root } from './programs.mjs';

const exec = promisify(execFile);
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

/** Licences under which a package may be used here and passed on with what we build. */
const ALLOWED = [
  'MIT',
  'Apache-2.0',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
  'Python-2.0',
  'Zlib',
  'CC0-1.0',
];

/** Judged by hand: packages whose licence the lock does not say, or that stay on the machine of a developer. */
const BY_HAND = {
  buildcheck: 'MIT, in its licence file; used by testcontainers',
  'cpu-features': 'MIT, in its licence file; used by testcontainers',
  ssh2: 'MIT, in its licence file; used by testcontainers',
  lightningcss: 'MPL-2.0, unchanged, used to run tests',
  jszip: 'MIT by choice',
  '@modelcontextprotocol/server-everything': 'MIT or Apache-2.0, in its licence file; used in tests',
  '@modelcontextprotocol/server-filesystem': 'MIT or Apache-2.0, in its licence file; used in tests',
  '@modelcontextprotocol/server-memory': 'MIT or Apache-2.0, in its licence file; used in tests',
};

/** Whether an SPDX expression is met by what is allowed: one side of an OR, and each of an AND. */
export const isAllowed = (licence) => {
  const inner = licence.replace(/^\((.*)\)$/, '$1');
  if (inner.includes(' OR ')) return inner.split(' OR ').some(isAllowed);
  return inner.split(' AND ').every((one) => ALLOWED.includes(one.trim()));
};

/** Packages of a lock under a licence that nobody has allowed, as lines. */
export const refusedLicences = (lock) =>
  Object.entries(lock.packages).flatMap(([path, { license, link }]) => {
    if (!path.includes('node_modules/') || link === true) return [];
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const isKnown = Object.keys(BY_HAND).some((known) => name === known || (known === 'lightningcss' && name.startsWith('lightningcss-')));
    return isKnown || (license !== undefined && isAllowed(license)) ? [] : [`${name}: ${license ?? 'no licence'}`];
  });

/** What an answer of `npm audit --json` comes to: weaknesses, as lines, or why there is no answer. */
export const auditFindings = (answer) => {
  if (answer.metadata?.vulnerabilities === undefined) return { unasked: answer.message ?? answer.error?.summary ?? 'no answer' };
  const serious = Object.values(answer.vulnerabilities ?? {}).filter(({ severity }) => severity === 'high' || severity === 'critical');
  return { weaknesses: serious.map(({ name, severity, range }) => `${name} ${range}: ${severity}`) };
};

const npm = async (...args) => {
  try {
    return (await exec('npm', args, { cwd: root, env: environment(), maxBuffer: OUTPUT_BYTES_MAX })).stdout;
  } catch (error) {
    // It also fails where it has something to tell.
    return error.stdout ?? '';
  }
};

const json = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
};

/** Licences, bill of materials, known weaknesses. @returns 0 when there is nothing to object to. */
export const checkPackages = async (say) => {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'));
  const refused = refusedLicences(lock);
  for (const line of refused) say(`licence not allowed: ${line}`);

  const materials = json(await npm('sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--omit', 'dev'));
  const count = materials.components?.length ?? 0;
  if (count > 0) {
    await mkdir(join(root, 'dist'), { recursive: true });
    await writeFile(join(root, 'dist', 'sbom.cdx.json'), `${JSON.stringify(materials, null, 2)}\n`);
    say(`dist/sbom.cdx.json: ${count} packages`);
  } else say('no bill of materials could be made');

  const { weaknesses = [], unasked } = auditFindings(json(await npm('audit', '--json', '--omit', 'dev')));
  for (const line of weaknesses) say(`known weakness: ${line}`);
  if (unasked !== undefined) say(`not run: the registry was not asked for known weaknesses (${String(unasked).split('\n')[0]})`);
  return refused.length === 0 && count > 0 && weaknesses.length === 0 ? 0 : 1;
};
