import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { privateFolder } from './private-folder.ts';

/** A certificate for 127.0.0.1 that is valid for a day, and signed by itself. Made by the `openssl` of the system. */
export interface SelfSigned {
  readonly key: Buffer;
  readonly certificate: Buffer;
  /** Where the certificate is, for clients that want a file. */
  readonly certificateFile: string;
  remove(): Promise<void>;
}

export const selfSigned = async (): Promise<SelfSigned> => {
  const { path, remove } = await privateFolder();
  const [keyFile, certificateFile] = [join(path, 'key.pem'), join(path, 'certificate.pem')];
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=localhost'];
  await new Promise<void>((resolve, reject) => {
    execFile('openssl', [...args, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', keyFile, '-out', certificateFile], (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return { key: await readFile(keyFile), certificate: await readFile(certificateFile), certificateFile, remove };
};
