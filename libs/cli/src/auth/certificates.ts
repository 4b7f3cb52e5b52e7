import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure, EXIT } from '../exit-code.ts';

export interface Certificates {
  /** Of the authority, for whoever connects. */
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

const DAYS = '825';
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'] as const;
const run = promisify(execFile);

/**
 * A certificate for the broker, by an authority that is made for it and forgotten: nobody can make another that clients would believe.
 *
 * @param hosts Names and addresses that clients connect to.
 * @throws CommandFailure where the system has no `openssl`.
 */
export const makeCertificates = async (hosts: readonly string[]): Promise<Certificates> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-tls-'));
  const at = (name: string): string => join(folder, name);
  const names = hosts.map((host) => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`).join(',');
  try {
    await writeFile(at('extensions'), `subjectAltName=${names}\nextendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n`);
    await openssl('req', '-x509', ...KEY, '-days', DAYS, '-subj', '/CN=SharedOS authority', '-keyout', at('ca-key'), '-out', at('ca'));
    await openssl('req', ...KEY, '-subj', '/CN=SharedOS broker', '-keyout', at('key'), '-out', at('request'));
    const signing = ['-CA', at('ca'), '-CAkey', at('ca-key'), '-CAcreateserial', '-days', DAYS, '-extfile', at('extensions')];
    await openssl('x509', '-req', '-in', at('request'), ...signing, '-out', at('certificate'));
    const [authority, certificate, key] = await Promise.all(['ca', 'certificate', 'key'].map((name) => readFile(at(name), 'utf8')));
    return { authority: authority as string, certificate: certificate as string, key: key as string };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const openssl = async (...args: readonly string[]): Promise<void> => {
  try {
    await run('openssl', [...args]);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new CommandFailure(
      EXIT.unavailable,
      'no_certificate',
      isMissing
        ? 'the system has no openssl, which makes the certificates: install it'
        : `openssl could not make a certificate: ${args[0]}`,
    );
  }
};
