import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommandLine } from '@sharedos/cli';
import type { LocalStack } from '@sharedos/testing';
import { ALICE, NAMESPACE } from './test-system.ts';

export interface Ran<T> {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** The document of `--json`. */
  readonly json: T;
}

/** The `sharedos` command of an operator of a stack, with a context of its own. */
export interface OperatorCli {
  readonly contextFile: string;
  run(...args: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
  json<T>(...args: readonly string[]): Promise<Ran<T>>;
  /** Writes the context anew, with what is said put in the place of what is right. */
  context(changed?: Readonly<Record<string, unknown>>): Promise<void>;
  end(): Promise<void>;
}

export const operatorCli = async (stack: LocalStack): Promise<OperatorCli> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-operator-'));
  const contextFile = join(folder, 'context.json');
  const context = async (changed: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    const right = {
      version: 1,
      natsUrl: stack.natsUrl,
      namespaceId: NAMESPACE,
      defaultPrincipal: 'human:alice',
      principals: { 'human:alice': stack.credentials.principal(NAMESPACE, ALICE) },
      operator: stack.credentials.operator,
    };
    await writeFile(contextFile, JSON.stringify({ ...right, ...changed }), { mode: 0o600 });
    await chmod(contextFile, 0o600);
  };
  await context();
  const run: OperatorCli['run'] = async (...args) => {
    const said = { out: '', err: '' };
    const code = await runCommandLine(args, {
      out: (text) => void (said.out += text),
      err: (text) => void (said.err += text),
      cwd: folder,
      env: { SHAREDOS_CONTEXT: contextFile },
    });
    return { code, ...said };
  };
  return {
    contextFile,
    run,
    json: async <T>(...args: readonly string[]) => {
      const ran = await run(...args, '--json');
      return { ...ran, json: JSON.parse(ran.out) as T };
    },
    context,
    end: () => rm(folder, { recursive: true, force: true }),
  };
};
