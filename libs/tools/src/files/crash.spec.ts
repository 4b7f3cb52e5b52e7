import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FilesWorld, codeOf, outputOf } from './files.fixture.ts';

/** Kills of each kind; `SHAREDOS_KILLS=200` for a long look. */
const KILLS = Number(process.env['SHAREDOS_KILLS'] ?? 4);
const TIMEOUT_MS = 60_000 + KILLS * 15_000;

let world: FilesWorld;
const children: ChildProcess[] = [];
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  world.remove();
});

/** A process that writes, once it has begun; `said` is what it reported so far, whole lines. */
const writer = async (...args: readonly string[]) => {
  const script = fileURLToPath(new URL('./crash-writer.fixture.ts', import.meta.url));
  const child = spawn(process.execPath, [script, world.root, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let said = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('begun')) resolve();
    });
  });
  return {
    said: () => said.split('\n').slice(1, -1),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};

describe('a process that is killed while it writes', () => {
  it('leaves the old content or the new, and a store in which others go on', { timeout: TIMEOUT_MS }, async () => {
    const { ask } = world.open();
    await ask('create', ['a.txt'], { content: 'x'.repeat(300_000) });
    for (let kill = 0; kill < KILLS; kill += 1) {
      const running = await writer('replace');
      await pause(20 + Math.random() * 150);
      await running.kill();
      expect(readFileSync(join(world.folder(), 'a.txt'), 'utf8')).toMatch(/^(.)\1{299999}$/);
      expect(codeOf(await ask('append', ['a.txt'], { content: '' }))).toBe('succeeded');
    }
  });

  it('leaves a folder as it was or as it is restored, and whoever looks next sees one of them', { timeout: TIMEOUT_MS }, async () => {
    const { ask } = world.open();
    const forms: string[] = [];
    for (const form of ['first', 'second']) {
      for (const name of ['a', 'b', 'c']) world.put(`tree/${form}-${name}`, form);
      forms.push(outputOf(await ask('snapshot.create', ['tree']))['snapshotId'] as string);
      await ask('delete', ['tree'], { recursive: true });
    }
    await ask('snapshot.restore', ['tree'], { snapshotId: forms[0] as string });
    for (let kill = 0; kill < KILLS; kill += 1) {
      const running = await writer('restore', ...forms);
      await pause(20 + Math.random() * 600);
      await running.kill();
      const { entries } = outputOf<{ entries: { name: string }[] }>(await ask('list', ['tree']));
      expect(['first-a first-b first-c', 'second-a second-b second-c']).toContain(entries.map(({ name }) => name).join(' '));
    }
  });
});

describe('several processes on one store', () => {
  it('lose nothing of each other', { timeout: TIMEOUT_MS }, async () => {
    const { ask } = world.open();
    await ask('create', ['log'], { content: '' });
    const writers = await Promise.all([writer('append'), writer('append'), writer('append')]);
    const enough = () => writers.every((each) => each.said().length >= 10);
    while (!enough()) await pause(20);
    for (const each of writers) await each.kill();
    const lines = new Set(readFileSync(join(world.folder(), 'log'), 'utf8').split('\n'));
    for (const each of writers) for (const line of each.said()) expect(lines).toContain(line);
    // One more of each may be there whose answer was cut off; none is there twice or in part.
    expect(lines.size - 1).toBeLessThanOrEqual(writers.reduce((sum, each) => sum + each.said().length, 0) + writers.length);
  });
});
