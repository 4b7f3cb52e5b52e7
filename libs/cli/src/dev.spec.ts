import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { startEventStoreDouble } from '@sharedos/eventstoredb-double';
import { EXIT } from './exit-code.ts';
import { runCommandLine } from './program.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

const run = (args: readonly string[], cwd: string) => {
  const stop = new AbortController();
  const printed = Promise.withResolvers<string>();
  let errors = '';
  const exit = runCommandLine(['dev', 'eventstoredb', ...args], {
    out: printed.resolve,
    err: (text) => void (errors += text),
    cwd,
    env: {},
    signal: stop.signal,
  });
  return { printed: printed.promise, exit, stop: () => stop.abort(), errors: () => errors };
};

it('sharedos dev eventstoredb prints its connection string, keeps its log in the folder, and ends when it is stopped', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-dev-'));
  folders.push(folder);
  const running = run(['--data', 'events', '--json'], folder);
  const { connectionString } = JSON.parse(await running.printed) as { connectionString: string };
  expect(connectionString).toMatch(/^esdb:\/\/127\.0\.0\.1:\d+\?tls=false$/);
  const port = /:(\d+)\?/.exec(connectionString)?.[1] ?? '';
  const second = run(['--port', port], folder);
  expect(await second.exit).toBe(EXIT.unavailable);
  expect(second.errors()).toContain('did not start');
  running.stop();
  expect(await running.exit).toBe(EXIT.ok);
  const again = await startEventStoreDouble({ dataDir: join(folder, 'events') });
  expect(again.events().length).toBeGreaterThan(0);
  await again.close();
});
