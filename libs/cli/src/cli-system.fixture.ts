import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Address, type ServiceName, inboxPrefix } from '@sharedos/contracts';
import { type LocalStack, startLocalStack } from '@sharedos/testing';
import type { Terminal } from './command-line.ts';
import { principalName } from './principal-name.ts';
import { runCommandLine } from './program.ts';

export const NAMESPACE = 'demo';
export const ALICE = { kind: 'human', userId: 'alice' } as const;
export const BOB = { kind: 'human', userId: 'bob' } as const;
export const SCOUT = { kind: 'agent', agentId: 'scout' } as const;
const PEOPLE: readonly Address[] = [ALICE, BOB, SCOUT];

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A running system, and the command as its users type it in a folder of the test's. Alice speaks, and is the namespace's root. */
export interface CliSystem {
  readonly folder: string;
  readonly stack: LocalStack;
  readonly terminal: Terminal;
  run(...args: readonly string[]): Promise<Ran>;
  /** The same with `--json`, read. Fails the test when nothing was answered. */
  json<T>(...args: readonly string[]): Promise<T>;
  write(file: string, text: string): Promise<void>;
  stop(): Promise<void>;
}

export const startCliSystem = async (
  services: readonly ServiceName[],
  executorEnv: Readonly<Record<string, string>> = {},
): Promise<CliSystem> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-cli-'));
  const stack = await startLocalStack({
    principals: PEOPLE.map((principal) => ({ namespaceId: NAMESPACE, principal })),
    roots: { [NAMESPACE]: [ALICE] },
  });
  const stop = async (): Promise<void> => {
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await Promise.all(services.map((name) => stack.startService(name, name === 'tool-executor' ? { env: executorEnv } : {})));
    const principals = Object.fromEntries(
      PEOPLE.map((one) => {
        const { user, password } = stack.credentials.principal(NAMESPACE, one);
        return [principalName(one), { user, password, inboxPrefix: inboxPrefix(NAMESPACE, one) }];
      }),
    );
    const sealKeys = stack.sealKeys.map(({ keyId, publicKey }) => `${keyId}:${publicKey}`).join(',');
    const speaker = { namespaceId: NAMESPACE, defaultPrincipal: principalName(ALICE), principals };
    const context = { version: 1, natsUrl: stack.natsUrl, sealKeys, ...speaker };
    await writeFile(join(folder, 'context.json'), JSON.stringify(context));
  } catch (error) {
    await stop();
    throw error;
  }
  const terminal: Terminal = {
    out: () => undefined,
    err: () => undefined,
    cwd: folder,
    env: { SHAREDOS_CONTEXT: join(folder, 'context.json') },
  };
  const run = async (...args: readonly string[]): Promise<Ran> => {
    const said = { out: '', err: '' };
    const out = (text: string): void => void (said.out += text);
    const err = (text: string): void => void (said.err += text);
    return { code: await runCommandLine(args, { ...terminal, out, err }), ...said };
  };
  return {
    folder,
    stack,
    terminal,
    run,
    json: async <T>(...args: readonly string[]): Promise<T> => {
      const { out, err } = await run(...args, '--json');
      if (out === '') throw new Error(`nothing was answered: ${err}`);
      return JSON.parse(out) as T;
    },
    write: (file, text) => writeFile(join(folder, file), text),
    stop,
  };
};
