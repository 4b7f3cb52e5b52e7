import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ServersMissing, findServers, isAtLeast } from './find-servers.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder of programs that state these versions. */
const programs = (versions: Readonly<Record<string, string>>): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sharedos-path-'));
  folders.push(folder);
  for (const [name, says] of Object.entries(versions)) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho '${says}'\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
};

describe('finding the servers', () => {
  it('takes those on PATH', async () => {
    const path = programs({ 'nats-server': 'nats-server: v2.9.10', 'redis-server': 'Redis server v=7.0.15 sha=0' });
    expect(await findServers({ path, install: false })).toEqual({ nats: join(path, 'nats-server'), redis: join(path, 'redis-server') });
  });
  it('passes over one that is too old when a later one will do', async () => {
    const old = programs({ 'nats-server': 'nats-server: v2.8.4', 'redis-server': 'Redis server v=7.2.4' });
    const recent = programs({ 'nats-server': 'nats-server: v2.10.1' });
    expect(await findServers({ path: `${old}:${recent}`, install: false })).toMatchObject({ nats: join(recent, 'nats-server') });
  });
  it('refuses with one line that names what is missing and how to get it', async () => {
    const path = programs({ 'nats-server': 'nats-server: v2.9.9' });
    const refusal = await findServers({ path, install: false }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ServersMissing);
    expect((refusal as Error).message).toBe(
      'SharedOS needs nats-server 2.9.10 or later (found 2.9.9) and redis-server 7.0.0 or later on PATH: as root, apt-get install nats-server redis-server; or with Homebrew, brew install nats-server redis',
    );
  });
  it('does not take a program that says nothing of its version', async () => {
    const path = programs({ 'nats-server': 'hello', 'redis-server': 'Redis server v=7.0.15' });
    await expect(findServers({ path, install: false })).rejects.toThrow(/nats-server/);
  });
  it.each([
    ['2.9.10', true],
    ['2.10.0', true],
    ['3.0.0', true],
    ['2.9.9', false],
    ['1.99.99', false],
  ])('compares %s by number, not by text', (version, enough) => expect(isAtLeast(version, [2, 9, 10])).toBe(enough));
});
