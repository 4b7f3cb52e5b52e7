import { mkdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Id } from '@sharedos/contracts';
import { z } from 'zod';
import { CommandFailure, EXIT, usageFailure } from './exit-code.ts';

const Credentials = z.strictObject({ user: z.string(), password: z.string(), inboxPrefix: z.string() });

/** How to reach one running system, and as whom. Written by `sharedos up`, readable by its owner alone: it holds passwords. */
export const Context = z.strictObject({
  version: z.literal(1),
  natsUrl: z.string().min(1),
  /** Certificates to believe the broker by, in PEM. */
  caFile: z.string().min(1).optional(),
  namespaceId: Id,
  /** Who a command speaks for when it does not say. */
  defaultPrincipal: z.string().min(1),
  auditor: z.string().min(1).optional(),
  principals: z.record(z.string(), Credentials),
  /** For `sharedos status` and `sharedos doctor`: it looks at what runs, and can change none of it. */
  operator: Credentials.optional(),
  filesRoot: z.string().optional(),
  /** Whose signatures of the audit proof are believed, as `id:key,…`. */
  sealKeys: z.string().optional(),
  /** The process that keeps the system running; the file means nothing once it is gone. */
  pid: z.int().optional(),
});
export type Context = z.infer<typeof Context>;

const PLACE = join('.sharedos', 'context.json');

/** The given file, or the nearest `.sharedos/context.json` from `cwd` upwards. */
export const contextPlace = async (cwd: string, given?: string): Promise<string> => {
  if (given !== undefined) return resolve(cwd, given);
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, PLACE);
    if ((await textOf(candidate)) !== undefined) return candidate;
    if (folder === dirname(folder)) return join(resolve(cwd), PLACE);
  }
};

const textOf = (file: string): Promise<string | undefined> => readFile(file, 'utf8').catch(() => undefined);

/** @throws CommandFailure that says what to do when there is none, it cannot be read, or its system is gone. */
export const readContext = async (file: string): Promise<Context> => {
  const text = await textOf(file);
  if (text === undefined)
    throw new CommandFailure(
      EXIT.unavailable,
      'not_started',
      `SharedOS is not running here (${file} is not there): start it with "npx sharedos up", or name a context with --context`,
    );
  const context = parsed(text);
  if (context === undefined)
    throw usageFailure(`${file} is not a context file of SharedOS: remove it and start again with "npx sharedos up"`);
  if (context.pid !== undefined && !isAlive(context.pid)) {
    throw new CommandFailure(EXIT.unavailable, 'not_started', `the system of ${file} has ended: start it again with "npx sharedos up"`);
  }
  return context;
};

const parsed = (text: string): Context | undefined => {
  try {
    const context = Context.safeParse(JSON.parse(text));
    return context.success ? context.data : undefined;
  } catch {
    return undefined;
  }
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

/** @throws CommandFailure when a system that still runs has the file. */
export const refuseStanding = async (file: string): Promise<void> => {
  const standing = await textOf(file);
  const owner = standing === undefined ? undefined : parsed(standing)?.pid;
  if (owner !== undefined && owner !== process.pid && isAlive(owner)) {
    throw new CommandFailure(
      EXIT.refused,
      'already_up',
      `SharedOS is up here already (process ${owner}): use it, or stop it with Ctrl-C there`,
    );
  }
};

/**
 * Writes the file whole or not at all, for its owner alone.
 *
 * @returns The folders that were made for it, innermost first.
 * @throws CommandFailure when a system that still runs has it.
 */
export const writeContext = async (file: string, context: Context): Promise<readonly string[]> => {
  await refuseStanding(file);
  const outermost = await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(context, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, file);
  return outermost === undefined ? [] : foldersFrom(dirname(resolve(file)), resolve(outermost));
};

/** From `inner` outwards to `outer`, both among them. */
const foldersFrom = (inner: string, outer: string): readonly string[] =>
  inner === outer || inner === dirname(inner) ? [inner] : [inner, ...foldersFrom(dirname(inner), outer)];

/** Removes our own file, and of the folders that were made for it those that nothing else is in. */
export const removeContext = async (file: string, madeFolders: readonly string[] = []): Promise<void> => {
  const standing = await textOf(file);
  if (standing !== undefined && parsed(standing)?.pid !== process.pid) return;
  await rm(file, { force: true });
  for (const folder of madeFolders) await rmdir(folder).catch(() => undefined);
};
