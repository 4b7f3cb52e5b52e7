import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SERVICE_NAMES } from '@sharedos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
let system: TestSystem;
const printed: string[] = [];

beforeAll(async () => {
  system = await startTestSystem({ env: () => ({ SHAREDOS_HEALTH_PORT: '0' }) });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] }, { constraints: { maxUses: 2 } });
  await system.files(ALICE, { 'notes/plan.md': 'plan' });
  await system.run({ calls: [{ tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } }] });
  // What goes wrong is what is told at length.
  await system.stack.redis.kill();
  await system.run({ calls: [{ tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } }] });
  await system.stack.redis.restart();
  await system.stack.nats.restart();
  for (const service of system.stack.services()) printed.push(service.output());
  printed.push(system.stack.nats.output(), system.stack.redis.output());
});
afterAll(() => system?.stop());

/** Everything secret that the processes were given. */
const secrets = (): readonly string[] => {
  const { credentials, redisUrl } = system.stack;
  return [
    ...SERVICE_NAMES.map((name) => credentials.service(name).password),
    ...[ALICE, BOB, SCOUT, AUDITOR].map((principal) => credentials.principal(NAMESPACE, principal).password),
    credentials.provisioner.password,
    credentials.operator.password,
    new URL(redisUrl).password,
  ];
};
const found = (text: string): readonly string[] => secrets().filter((secret) => secret.length > 0 && text.includes(secret));

describe('secrets', () => {
  it('are in none of what the processes print, also while Redis and the broker are away', () => {
    const text = printed.join('\n');
    expect(text.length).toBeGreaterThan(1_000);
    expect(text).toContain('"event":"counters"');
    expect(found(text)).toEqual([]);
  });

  it('are in no argument of a process, where every user of the machine reads them', async () => {
    const pids = [...system.stack.services().map(({ pid }) => pid), system.stack.nats.pid, system.stack.redis.pid];
    for (const pid of pids) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8');
      expect(line.length).toBeGreaterThan(5);
      expect(found(line)).toEqual([]);
    }
  });

  it.each([
    ['a password that is none', { SHAREDOS_NATS_PASSWORD: 'tell-nobody-1' }],
    ['a token secret that is too short', { SHAREDOS_TOKEN_SECRET: 'tell-nobody-2' }],
    [
      'an address of Redis that is none',
      { SHAREDOS_REDIS_URL: 'redis://:tell-nobody-3@127.0.0.1:1', SHAREDOS_NATS_URL: 'nats://127.0.0.1:1' },
    ],
    ['a file that is not there', { SHAREDOS_NATS_PASSWORD: '', SHAREDOS_NATS_PASSWORD_FILE: '/tell-nobody-4' }],
    ['roots that are none', { SHAREDOS_ROOTS: 'tell-nobody-5' }],
  ])('are in no error of a start with %s', async (_, wrong) => {
    const { user, password } = system.stack.credentials.service('authorizer');
    const env = {
      PATH: process.env['PATH'] ?? '',
      SHAREDOS_NATS_URL: system.stack.natsUrl,
      SHAREDOS_NATS_USER: user,
      SHAREDOS_NATS_PASSWORD: password,
      SHAREDOS_REDIS_URL: system.stack.redisUrl,
      SHAREDOS_TOKEN_SECRET: 'x'.repeat(40),
      SHAREDOS_ROOTS: '{}',
      ...wrong,
    };
    const started = promisify(execFile)(process.execPath, [join(root, 'services/authorizer/src/main.ts')], { env, cwd: root });
    const said = await started.then(
      () => '',
      (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
    );
    expect(said).toMatch(/^authorizer\b.+\n$/);
    expect(said).not.toContain('tell-nobody');
    expect(found(said)).toEqual([]);
  });
});

describe('the table of threats', () => {
  it('names, for each row, a test that there is', async () => {
    const page = await readFile(join(root, 'docs/security.md'), 'utf8');
    const [, table = ''] = page.split('## Threats');
    const rows = table.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| Threat'));
    expect(rows.length).toBeGreaterThan(20);
    for (const row of rows) {
      const [, path = '', title = ''] = /\[[\w.-]+\]\(\.\.\/([\w./-]+)\): (.+) \|$/.exec(row) ?? [];
      const titles = [
        ...(await readFile(join(root, path), 'utf8')).matchAll(/(?:describe|it)(?:\.each)?\((?:[^'`]*\)\()?['`]([^'`]+)/g),
      ].map(([, text]) => text as string);
      expect([row, titles.some((text) => text.startsWith(title))]).toEqual([row, true]);
    }
  });
  it('stands beside commands that there are', async () => {
    const page = await readFile(join(root, 'docs/security.md'), 'utf8');
    const source = await readFile(join(root, 'libs/cli/src/commands/auth.ts'), 'utf8');
    for (const [, verb] of page.matchAll(/sharedos auth ([a-z]+)/g)) expect(source).toContain(`.command('${verb}')`);
  });
});
