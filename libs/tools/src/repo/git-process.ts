import { spawn } from 'node:child_process';
import { err, ok } from '@sharedos/contracts';
import type { RepoResult } from './repo-refusal.ts';

/** Where one run of git finds everything, all of it made for this one operation but `objects`. */
export interface GitPlaces {
  /** A repository folder of ours, with our configuration. */
  readonly gitFolder: string;
  /** An empty working tree of ours. */
  readonly workTree: string;
  readonly index: string;
  /** Where new objects go. */
  readonly newObjects: string;
  /** The objects of the repository that is asked about, which are only read. */
  readonly objects: string;
}

export interface GitRun {
  readonly input?: string | Uint8Array;
  /** More than this is not waited for. @default 64 MiB */
  readonly outputMax?: number;
  /** Output beyond the bound is cut off instead of refused. */
  readonly cut?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const RUN_MS = 30_000;
const OUTPUT_MAX = 64 * 1024 * 1024;

/**
 * Runs one subcommand of git with a fixed argument list, never through a shell, bounded in time and output.
 *
 * Neither the configuration, the attributes and hooks of the repository nor its working tree are ever seen by git: its
 * folder is one of ours, the system's and the user's configuration are off, and the working tree is empty. So there is nothing in
 * which a repository could name a program to run: no hook, filter, textconv, external diff, pager, editor, monitor, credential
 * helper, alias or signing program; and no remote to reach.
 */
export const runGit = (places: GitPlaces, args: readonly string[], cancel: AbortSignal, run: GitRun = {}): Promise<RepoResult<Buffer>> =>
  new Promise((resolve) => {
    if (cancel.aborted) return resolve(err('operation_cancelled'));
    const child = spawn('git', [...args], {
      cwd: places.workTree,
      env: environment(places, run),
      stdio: ['pipe', 'pipe', 'ignore'],
      shell: false,
    });
    const max = run.outputMax ?? OUTPUT_MAX;
    const chunks: Buffer[] = [];
    let size = 0;
    let ended: RepoResult<Buffer> | undefined;
    const end = (outcome: RepoResult<Buffer>): void => {
      ended ??= outcome;
      child.kill('SIGKILL');
    };
    const output = (): Buffer => Buffer.concat(chunks).subarray(0, max);
    const aborted = (): void => end(err('operation_cancelled'));
    const timer = setTimeout(() => end(err('git_failed')), RUN_MS);
    cancel.addEventListener('abort', aborted);
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      // One byte more than the bound, so that who asked sees that there was more.
      if (size > max) end(run.cut === true ? ok(Buffer.concat(chunks).subarray(0, max + 1)) : err('repo_too_large'));
    });
    child.stdin.on('error', () => undefined).end(run.input ?? '');
    child.once('error', () => {
      ended ??= err('git_unavailable');
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      cancel.removeEventListener('abort', aborted);
      resolve(ended ?? (code === 0 ? ok(output()) : err('git_failed')));
    });
  });

const environment = ({ gitFolder, workTree, index, newObjects, objects }: GitPlaces, { env }: GitRun): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'] ?? '',
  HOME: gitFolder,
  XDG_CONFIG_HOME: gitFolder,
  LC_ALL: 'C',
  TZ: 'UTC',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'false',
  SSH_ASKPASS: 'false',
  GIT_EDITOR: 'false',
  GIT_PAGER: 'cat',
  GIT_ALLOW_PROTOCOL: '',
  GIT_PROTOCOL_FROM_USER: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_FLUSH: '0',
  GIT_DIR: gitFolder,
  GIT_WORK_TREE: workTree,
  GIT_INDEX_FILE: index,
  GIT_OBJECT_DIRECTORY: newObjects,
  GIT_ALTERNATE_OBJECT_DIRECTORIES: objects,
  ...env,
});
