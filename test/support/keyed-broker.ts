import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { runCommandLine } from '@sharedos/cli';
import { answersWith, findServers, freePort, startServer } from '@sharedos/testing';

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A real broker with the configuration that `sharedos auth` makes: TLS, and a key for everybody. */
export interface KeyedBroker {
  readonly folder: string;
  readonly url: string;
  readonly caFile: string;
  readonly pidFile: string;
  /** `sharedos auth …` over its folder. */
  auth(...words: readonly string[]): Promise<Said>;
  /** The same, and the broker reads its configuration again. */
  changed(...words: readonly string[]): Promise<Said>;
  seedOf(user: string): Promise<string>;
  end(): Promise<void>;
}

/** @param prepared Words of `sharedos auth` before the broker starts, after `init`. */
export const startKeyedBroker = async (prepared: readonly (readonly string[])[]): Promise<KeyedBroker> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-keyed-'));
  const auth = async (...words: readonly string[]): Promise<Said> => {
    const said = { out: '', err: '' };
    const terminal = {
      out: (text: string): void => void (said.out += text),
      err: (text: string): void => void (said.err += text),
      cwd: folder,
      env: {},
    };
    return { code: await runCommandLine(['auth', ...words, '--dir', folder], terminal), ...said };
  };
  const done = async (...words: readonly string[]): Promise<void> => {
    const { code, err } = await auth(...words);
    if (code !== 0) throw new Error(`sharedos auth ${words.join(' ')}: ${err}`);
  };
  await done('init', '--host', '127.0.0.1', '--store', join(folder, 'streams'));
  for (const words of prepared) await done(...words);
  const { nats } = await findServers();
  const port = await freePort();
  const pidFile = join(folder, 'nats.pid');
  const server = await startServer({
    label: 'nats-server',
    command: nats,
    args: ['-c', join(folder, 'nats.conf'), '-a', '127.0.0.1', '-p', String(port), '-P', pidFile],
    cwd: folder,
    isServing: () => answersWith(port, '', /^INFO .*"tls_required":true/),
  });
  const seedOf = async (user: string): Promise<string> => (await readFile(join(folder, 'secrets', `${user}.seed`), 'utf8')).trim();
  return {
    folder,
    url: `tls://127.0.0.1:${port}`,
    caFile: join(folder, 'secrets', 'ca.pem'),
    pidFile,
    auth,
    changed: (...words) => auth(...words, '--reload', pidFile),
    seedOf,
    end: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
};
