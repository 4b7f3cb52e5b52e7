import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROVISIONER } from '@sharedos/bus';
import { afterEach, describe, expect, it } from 'vitest';
import { isAlive } from './alive.ts';
import { answersWith } from './line-probe.ts';
import type { NatsConfig } from './nats-server.ts';
import { OWN_PASSWORD, type OwnServer, startOwnNats, startOwnRedis, startProvisionedNats } from './own-server.ts';
import { waitFor } from './wait-for.ts';

const plain: NatsConfig = ({ name, host, port, storeDir }) =>
  JSON.stringify({ server_name: name, listen: `${host}:${port}`, jetstream: { store_dir: storeDir } });
const portOf = ({ url }: OwnServer): number => Number(new URL(url).port);
const redisSays = (own: OwnServer, commands: string, answer: RegExp) =>
  answersWith(portOf(own), `AUTH ${OWN_PASSWORD}\r\n${commands}`, answer);

describe("a server of a spec's own", () => {
  const started: OwnServer[] = [];
  const kept = <Own extends OwnServer>(own: Own): Own => {
    started.push(own);
    return own;
  };
  afterEach(async () => {
    for (const own of started.splice(0)) await own.end();
  });

  it('is told what the spec gives, in a folder that nobody else may read', async () => {
    const { storeDir, server } = kept(await startOwnNats(plain));
    expect(statSync(dirname(storeDir)).mode & 0o777).toBe(0o700);
    expect(existsSync(storeDir)).toBe(true);
    expect(server.running()).toBe(true);
  });

  it('is gone, and its folder with it, once it was ended, even when it was frozen', async () => {
    const { storeDir, server, end } = await startOwnNats(plain);
    server.pause();
    await end();
    expect(isAlive(server.pid)).toBe(false);
    expect(existsSync(dirname(storeDir))).toBe(false);
  });

  it('leaves no folder when it does not start, and says what the server said', async () => {
    let folder = '';
    const wrong: NatsConfig = ({ storeDir }) => {
      folder = dirname(storeDir);
      return 'no_such_setting: {';
    };
    await expect(startOwnNats(wrong)).rejects.toThrow(/nats-server ended before it was ready:\n.*Parse error on line 1/);
    expect(folder).not.toBe('');
    expect(existsSync(folder)).toBe(false);
  });

  it('has the streams of the product, and lets in its services and the provisioner and nobody else', async () => {
    const nats = kept(await startProvisionedNats());
    const provisioner = await nats.connect(PROVISIONER);
    const manager = await provisioner.nats.jetstreamManager();
    expect((await manager.streams.info('LEDGER')).config.name).toBe('LEDGER');
    await provisioner.close();
    await (await nats.connect('authorizer')).close();
    await expect(nats.connect('somebody' as 'authorizer')).rejects.toThrow(/refused user/);
  });

  it('comes back after a kill on the same port, and a Redis comes back empty', async () => {
    const redis = kept(await startOwnRedis());
    expect(await redisSays(redis, 'SET a 1\r\nGET a\r\n', /^\+OK\r\n\+OK\r\n\$1\r\n1\r\n/)).toBe(true);
    const before = redis.server.pid;
    await redis.server.kill();
    expect(redis.server.running()).toBe(false);
    await redis.server.restart();
    expect(redis.server.pid).not.toBe(before);
    expect(await redisSays(redis, 'GET a\r\n', /^\+OK\r\n\$-1\r\n/)).toBe(true);
  });

  it('lets nobody into a Redis without the password', async () =>
    expect(await answersWith(portOf(kept(await startOwnRedis())), 'PING\r\n', /^-NOAUTH/)).toBe(true));

  it('does not outlive a parent that is killed with SIGKILL', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sharedos-parent-'));
    const [report, program] = [join(folder, 'report'), join(folder, 'parent.mjs')];
    writeFileSync(
      program,
      `import { startOwnRedis } from '${fileURLToPath(new URL('own-server.ts', import.meta.url))}';
       import { writeFileSync } from 'node:fs';
       const { server } = await startOwnRedis();
       writeFileSync(${JSON.stringify(report)}, String(server.pid) + '\\n');`,
    );
    const parent = spawn(process.execPath, [program], { stdio: 'ignore' });
    try {
      const pid = await waitFor('the server', () => existsSync(report) && /^(\d+)\n/.exec(readFileSync(report, 'utf8'))?.[1], 15_000);
      expect(isAlive(Number(pid))).toBe(true);
      parent.kill('SIGKILL');
      await waitFor('the end of the server', () => !isAlive(Number(pid)), 10_000);
    } finally {
      parent.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
