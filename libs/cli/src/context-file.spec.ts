import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Context, contextPlace, readContext, removeContext, writeContext } from './context-file.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sharedos-context-'));
  file = join(folder, '.sharedos', 'context.json');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const context: Context = {
  version: 1,
  natsUrl: 'nats://127.0.0.1:4222',
  namespaceId: 'demo',
  defaultPrincipal: 'human:alice',
  principals: { 'human:alice': { user: 'principal.demo.human.alice', password: 'secret', inboxPrefix: '_INBOX.demo.human.alice' } },
  pid: process.pid,
};
// Process ids are at most 2^22 on Linux.
const GONE = 4_194_305;

describe('the context file', () => {
  it('is for its owner alone, folder and all', async () => {
    await writeContext(file, context);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, '.sharedos'))).mode & 0o777).toBe(0o700);
    expect(await readContext(file)).toEqual(context);
    expect(await readdir(join(folder, '.sharedos'))).toEqual(['context.json']);
  });

  it('is found from any folder below', async () => {
    await writeContext(file, context);
    const below = join(folder, 'a', 'b');
    await mkdir(below, { recursive: true });
    expect(await contextPlace(below)).toBe(file);
    expect(await contextPlace(below, 'mine.json')).toBe(join(below, 'mine.json'));
  });

  it('is refused when it is not there, with what to do', () => expect(readContext(file)).rejects.toThrow(/npx sharedos up/));

  it('is refused when its system has ended', async () => {
    await writeContext(file, { ...context, pid: GONE });
    await expect(readContext(file)).rejects.toThrow(/has ended/);
  });

  it.each(['', '{', '[]', '{"version":2}'])('is refused when it holds %j', async (text) => {
    await mkdir(join(folder, '.sharedos'));
    await writeFile(file, text);
    await expect(readContext(file)).rejects.toThrow(/is not a context file/);
  });

  it('is not taken from a system that still runs', async () => {
    await writeContext(file, { ...context, pid: process.ppid });
    await expect(writeContext(file, context)).rejects.toThrow(/up here already/);
    await removeContext(file);
    expect(await readFile(file, 'utf8')).toContain(String(process.ppid));
  });

  it('is taken over from one that has ended, and leaves nothing when removed', async () => {
    const made = await writeContext(file, { ...context, pid: GONE });
    await writeContext(file, context);
    await removeContext(file, made);
    expect(await readdir(folder)).toEqual([]);
  });

  it('takes away only the folders that were made for it, and none that holds something else', async () => {
    const mine = join(folder, 'mine');
    await mkdir(mine);
    const inMine = join(mine, 'ctx.json');
    await removeContext(inMine, await writeContext(inMine, context));
    expect(await readdir(folder)).toEqual(['mine']);
    const below = join(mine, 'a', 'b', 'ctx.json');
    const made = await writeContext(below, context);
    expect(made).toEqual([join(mine, 'a', 'b'), join(mine, 'a')]);
    await writeFile(join(mine, 'a', 'note'), 'keep');
    await removeContext(below, made);
    expect(await readdir(join(mine, 'a'))).toEqual(['note']);
  });
});
