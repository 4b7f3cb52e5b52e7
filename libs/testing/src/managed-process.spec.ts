import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { isAlive } from './alive.ts';
import { type ManagedProcess, startProcess } from './managed-process.ts';
import { waitFor } from './wait-for.ts';

const started: ManagedProcess[] = [];
afterEach(async () => {
  for (const each of started.splice(0)) await each.kill();
});

const node = async (program: string): Promise<ManagedProcess> => {
  const each = await startProcess({ label: 'program', command: process.execPath, args: ['-e', program], env: {}, cwd: tmpdir() });
  started.push(each);
  return each;
};
const FOR_EVER = 'setInterval(() => {}, 1000);';
const heard = (each: ManagedProcess, text: string) => () => each.output().includes(text);

describe('a managed process', () => {
  it('is ready when the probe says so', async () => {
    const each = await node(`console.log('up'); ${FOR_EVER}`);
    await each.ready(heard(each, 'up'), 10_000);
    expect(each.running()).toBe(true);
  });
  it('is not waited for when it has ended, and says what it printed', async () => {
    const each = await node(`console.error('no such setting'); process.exit(3);`);
    await expect(each.ready(() => false, 10_000)).rejects.toThrow(/ended before it was ready:\nno such setting/);
    expect(await each.exited).toEqual({ code: 3, signal: null });
  });
  it('is not waited for past the deadline', async () => {
    const each = await node(FOR_EVER);
    await expect(each.ready(() => false, 100)).rejects.toThrow(/not ready within 100 ms/);
  });
  it('that cannot be started is a refusal, not an event', () =>
    expect(startProcess({ label: 'nothing', command: '/nonexistent', args: [], env: {}, cwd: tmpdir() })).rejects.toThrow(
      /nothing cannot be started/,
    ));
  it('sees nothing of our environment but what it is given', async () => {
    const each = await startProcess({
      label: 'env',
      command: process.execPath,
      args: ['-e', 'console.log(JSON.stringify(process.env))'],
      env: { ONLY: 'this' },
      cwd: tmpdir(),
    });
    await each.exited;
    expect(JSON.parse(each.output())).toEqual({ ONLY: 'this' });
  });
  it('ends by itself when asked to stop', async () => {
    const each = await node(`process.on('SIGTERM', () => process.exit(7)); console.log('up'); ${FOR_EVER}`);
    await each.ready(heard(each, 'up'), 10_000);
    expect(await each.stop()).toEqual({ code: 7, signal: null });
  });
  it('is ended when it does not stop within its grace', async () => {
    const each = await node(`process.on('SIGTERM', () => {}); console.log('up'); ${FOR_EVER}`);
    await each.ready(heard(each, 'up'), 10_000);
    expect(await each.stop(50)).toEqual({ code: null, signal: 'SIGKILL' });
  });
  it('can be stopped while it is frozen', async () => {
    const each = await node(`process.on('SIGTERM', () => process.exit(0)); console.log('up'); ${FOR_EVER}`);
    await each.ready(heard(each, 'up'), 10_000);
    each.pause();
    expect(await each.stop()).toEqual({ code: 0, signal: null });
  });
  it('takes along what it started itself', async () => {
    const each = await node(
      `const c = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(FOR_EVER)}]); console.log('child ' + c.pid); ${FOR_EVER}`,
    );
    const child = await waitFor('the child', () => /child (\d+)/.exec(each.output())?.[1], 10_000);
    await each.kill();
    await waitFor('the end of the child', () => !isAlive(Number(child)), 5_000);
  });
  it('keeps the last of its output only', async () => {
    const each = await node(`for (let i = 0; i < 2000; i += 1) console.log('line ' + i);`);
    await each.exited;
    expect(each.output().split('\n')).toHaveLength(400);
    expect(each.output()).toMatch(/line 1999$/);
  });
});

describe('when this process is killed with SIGKILL', () => {
  it('leaves no child and no guarded folder behind', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sharedos-watchdog-'));
    const report = join(folder, 'report');
    const kept = mkdtempSync(join(tmpdir(), 'sharedos-guarded-'));
    const here = fileURLToPath(new URL('.', import.meta.url));
    const program = join(folder, 'parent.mjs');
    writeFileSync(
      program,
      `import { startProcess } from '${here}managed-process.ts';
       import { guardFolder } from '${here}watchdog.ts';
       import { writeFileSync } from 'node:fs';
       guardFolder(${JSON.stringify(kept)});
       const child = await startProcess({ label: 'child', command: process.execPath, args: ['-e', ${JSON.stringify(FOR_EVER)}], env: {}, cwd: '/' });
       writeFileSync(${JSON.stringify(report)}, String(child.pid) + '\\n');`,
    );
    const parent = spawn(process.execPath, [program], { stdio: 'ignore' });
    try {
      const child = await waitFor('the child', () => existsSync(report) && /^(\d+)\n/.exec(readFileSync(report, 'utf8'))?.[1], 15_000);
      expect(isAlive(Number(child))).toBe(true);
      parent.kill('SIGKILL');
      await waitFor('the end of the child', () => !isAlive(Number(child)), 10_000);
      await waitFor('the end of the folder', () => !existsSync(kept), 10_000);
    } finally {
      parent.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
