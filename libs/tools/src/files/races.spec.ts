import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ToolResult } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FilesWorld, SECRET, codeOf, outputOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

/** Puts a link to outside in the place of `target` and back, as fast as it can, until told to stop. */
const swapper = (prepare: string, swap: string): string => `
  const { workerData, parentPort } = require('node:worker_threads');
  const fs = require('node:fs');
  const stop = new Int32Array(workerData.stop);
  const { target, parked, outside } = workerData;
  const insist = (step) => {
    for (;;) {
      try {
        return step();
      } catch {
        try { fs.rmSync(target, { recursive: true, force: true }); } catch {}
      }
    }
  };
  ${prepare}
  parentPort.postMessage('swapping');
  while (Atomics.load(stop, 0) === 0) {
    ${swap}
  }
`;

/** A folder cannot be replaced in one step, so it is away for a moment; one that a `create` makes meanwhile is thrown away. */
const FOLDER_SWAPPER = swapper(
  '',
  `fs.renameSync(target, parked);
   insist(() => fs.symlinkSync(outside, target));
   fs.unlinkSync(target);
   insist(() => fs.renameSync(parked, target));`,
);

/** A file is replaced in one step, so at every moment there is the file or the link. */
const FILE_SWAPPER = swapper(
  '',
  `try {
     fs.symlinkSync(outside, target + '~');
     fs.renameSync(target + '~', target);
     fs.writeFileSync(target + '~', 'inside');
     fs.renameSync(target + '~', target);
   } catch {}`,
);

/** Rounds of each race; `SHAREDOS_RACE_ROUNDS=10000` for a long look. */
const ROUNDS = Number(process.env['SHAREDOS_RACE_ROUNDS'] ?? 25);
const RACE_MS = 50_000 + ROUNDS * 100;

describe.runIf(process.platform === 'linux')('something swapped for a link while it is used', () => {
  /** Runs rounds of calls against the swapping, until both sides of the race were met: one that was never run proves nothing. */
  const racing = async (
    swapping: string,
    rounds: number,
    target: string,
    elsewhere: string,
    call: (round: number) => Promise<readonly ToolResult[]>,
  ): Promise<void> => {
    const before = world.seen(world.outside);
    const stop = new SharedArrayBuffer(4);
    const parked = `${world.folder()}.parked`;
    const worker = new Worker(swapping, { eval: true, workerData: { stop, target, parked, outside: elsewhere } });
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    try {
      await new Promise((resolve) => worker.once('message', resolve));
      const seen = new Set<string>();
      const deadline = Date.now() + RACE_MS - 10_000;
      for (let round = 0; round < rounds || !(seen.has('path_not_confined') && seen.has('succeeded')); round += 1) {
        expect(Date.now(), `met only ${[...seen].join()}`).toBeLessThan(deadline);
        const results = await call(round);
        expect(JSON.stringify(results)).not.toContain(SECRET);
        for (const result of results) seen.add(codeOf(result));
      }
    } finally {
      Atomics.store(new Int32Array(stop), 0, 1);
      await ended;
    }
    expect(world.seen(world.outside)).toEqual(before);
  };

  /** What a read gave; a refusal counts as the harmless content. */
  const contentOf = (read: ToolResult): string => (read.status === 'succeeded' ? outputOf<{ content: string }>(read).content : 'inside');

  it('never lets a call through a folder out', { timeout: RACE_MS }, async () => {
    world.put('swapped/inner/secret.txt', 'inside');
    const { ask } = world.open();
    await racing(FOLDER_SWAPPER, ROUNDS, join(world.folder(), 'swapped'), world.outside, async (round) => {
      const results = await Promise.all([
        ask('read', ['swapped', 'inner', 'secret.txt']),
        ask('list', ['swapped']),
        ask('search', ['swapped'], { query: 'i' }),
        ask('stat', ['swapped', 'inner', 'secret.txt']),
        // What is written waits for the disk, which the swapping keeps busy.
        ...(round % 10 === 0 ? [ask('append', ['swapped', 'inner', 'secret.txt'], { content: '!' })] : []),
        ...(round % 10 === 5 ? [ask('create', ['swapped', 'inner', `made-${round}`], { content: '' })] : []),
      ]);
      const [read, listed] = results;
      expect(contentOf(read)).toMatch(/^inside!*$/);
      const names = listed.status === 'succeeded' ? outputOf<{ entries: { name: string }[] }>(listed).entries.map(({ name }) => name) : [];
      expect(['', 'inner']).toContain(names.join());
      return results;
    });
  });

  it('never lets a call on a file out', { timeout: RACE_MS }, async () => {
    world.put('swapped.txt', 'inside');
    const { ask } = world.open();
    await racing(FILE_SWAPPER, ROUNDS, join(world.folder(), 'swapped.txt'), join(world.outside, 'secret.txt'), async (round) => {
      const asked = Array.from({ length: 8 }, () => ask('read', ['swapped.txt']));
      const reads = await Promise.all(asked);
      expect(reads.map(contentOf).filter((content) => !/^inside!*$/.test(content))).toEqual([]);
      const written = round % 10 === 0 ? [await ask('append', ['swapped.txt'], { content: '!' })] : [];
      return [...reads, ...written, await ask('search', [], { query: 'secret' })];
    });
  });
});
