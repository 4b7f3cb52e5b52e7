import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus, connectBus, readSubject } from '@sharedos/bus';
import { TurnGet, TurnGetReply, principalSubject } from '@sharedos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive } from './alive.ts';
import { answersWith } from './line-probe.ts';
import { type LocalStack, type StackCredentials, startLocalStack } from './local-stack.ts';
import { waitFor } from './wait-for.ts';

const alice = { kind: 'human', userId: 'alice' } as const;
const connectAs = (stack: LocalStack, { user, password, inboxPrefix }: StackCredentials): Promise<Bus> =>
  connectBus({ servers: stack.natsUrl, user, pass: password, name: 'spec', inboxPrefix });
const childrenOf = (pid: number): readonly number[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((entry) => {
      try {
        return new RegExp(`^\\d+ \\(.*\\) [^Z] ${pid} `, 's').test(readFileSync(`/proc/${entry}/stat`, 'utf8'));
      } catch {
        return false;
      }
    })
    .map(Number);

describe('the local stack', () => {
  let stack: LocalStack;
  beforeAll(async () => {
    stack = await startLocalStack({ principals: [{ namespaceId: 'tenant', principal: alice }] });
  });
  afterAll(() => stack.stop());

  it('keeps its folder, its configuration and its passwords from other users', () => {
    expect(statSync(stack.dataDir).mode & 0o777).toBe(0o700);
    for (const file of ['nats.conf', 'redis.conf']) expect(statSync(join(stack.dataDir, file)).mode & 0o777).toBe(0o600);
  });

  it('gives every user its own random password', () => {
    const passwords = [
      ...(['authorizer', 'tool-executor', 'messaging-router', 'audit-projector'] as const).map(
        (name) => stack.credentials.service(name).password,
      ),
      stack.credentials.principal('tenant', alice).password,
      stack.credentials.provisioner.password,
    ];
    expect(new Set(passwords).size).toBe(passwords.length);
    for (const password of passwords) expect(password).toMatch(/^[A-Za-z0-9_-]{32}$/);
  });

  it('refuses to name credentials of a principal that it does not know', () =>
    expect(() => stack.credentials.principal('other', alice)).toThrow(RangeError));

  it('lets nobody in without a password', async () => {
    const credentials = stack.credentials.principal('tenant', alice);
    await expect(connectAs(stack, { ...credentials, password: 'guess' })).rejects.toThrow(/refused user/);
    const redisPort = Number(new URL(stack.redisUrl).port);
    expect(await answersWith(redisPort, 'PING\r\n', /^-NOAUTH/)).toBe(true);
  });

  it('keeps what NATS has stored through a kill and a restart on the same port', async () => {
    const executor = await connectAs(stack, stack.credentials.service('tool-executor'));
    const subject = principalSubject('turn.result', 'tenant', alice, 'e1');
    const stored = await executor.publishStored(subject, new TextEncoder().encode('{}'), { timeoutMs: 5_000 });
    expect(stored.ok).toBe(true);
    await stack.nats.kill();
    expect(stack.nats.running()).toBe(false);
    await stack.nats.restart();
    await waitFor('the reconnection', () => executor.connected, 10_000);
    const read = await readSubject(executor, 'TURN_EVENTS', subject, { timeoutMs: 5_000 });
    expect(read.ok && read.value.length).toBe(1);
    await executor.close();
  });

  it('makes a frozen NATS one that does not answer, and a resumed one that does', async () => {
    const bus = await connectAs(stack, stack.credentials.principal('tenant', alice));
    const ask = () =>
      bus.request(principalSubject('turn.get', 'tenant', alice), TurnGet, { executionId: 'e1' }, TurnGetReply, { timeoutMs: 200 });
    stack.nats.pause();
    await waitFor('silence', async () => !(await bus.flush(200)), 5_000);
    expect(await ask()).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    stack.nats.resume();
    expect(await bus.flush(5_000)).toBe(true);
    await bus.close();
  });

  it('brings Redis back empty, as another run, on the same port', async () => {
    const { port, password } = new URL(stack.redisUrl);
    const set = `AUTH ${password}\r\nSET counter 5\r\n`;
    expect(await answersWith(Number(port), set, /^\+OK\r\n\+OK/)).toBe(true);
    await stack.redis.restart();
    expect(await answersWith(Number(port), `AUTH ${password}\r\nGET counter\r\n`, /^\+OK\r\n\$-1\r\n/)).toBe(true);
  });

  it('starts where the usual ports are taken, beside another stack', async () => {
    // Somebody else may hold them already; then they are taken as well.
    const taken = [4222, 6379].map((port) =>
      createServer()
        .on('error', () => undefined)
        .listen(port, '127.0.0.1'),
    );
    const second = await startLocalStack({ principals: [] });
    expect(second.natsUrl).not.toBe(stack.natsUrl);
    await second.stop();
    for (const server of taken) server.close();
  });
});

describe('stopping the local stack', () => {
  it('leaves no process and no folder behind, also when asked twice', async () => {
    const before = new Set(childrenOf(process.pid));
    const stack = await startLocalStack({ principals: [] });
    const pids = childrenOf(process.pid).filter((pid) => !before.has(pid));
    expect(pids).toContain(stack.nats.pid);
    expect(pids).toContain(stack.redis.pid);
    await Promise.all([stack.stop(), stack.stop()]);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(existsSync(stack.dataDir)).toBe(false);
  });

  it('ends a frozen server too', async () => {
    const stack = await startLocalStack({ principals: [] });
    stack.nats.pause();
    await stack.stop();
    expect(isAlive(stack.nats.pid)).toBe(false);
  });

  it('keeps a folder that was given to it, and finds the streams there again', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sharedos-given-'));
    try {
      const first = await startLocalStack({ principals: [], dataDir });
      const bus = await connectAs(first, first.credentials.service('tool-executor'));
      await bus.publishStored(principalSubject('turn.result', 'tenant', alice, 'e1'), new TextEncoder().encode('{}'), { timeoutMs: 5_000 });
      await bus.close();
      await first.stop();
      const second = await startLocalStack({ principals: [], dataDir });
      const again = await connectAs(second, second.credentials.service('tool-executor'));
      const read = await readSubject(again, 'TURN_EVENTS', principalSubject('turn.result', 'tenant', alice, 'e1'), { timeoutMs: 5_000 });
      expect(read.ok && read.value.length).toBe(1);
      await again.close();
      await second.stop();
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
