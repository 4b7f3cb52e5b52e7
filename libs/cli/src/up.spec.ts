import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const bin = join(import.meta.dirname, '..', 'bin', 'sharedos.mjs');

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

let folder: string;
let up: ChildProcess;
let said = '';
let ready: { readonly ready: boolean; readonly namespaceId: string };

/** The command as a shell runs it: a process of its own, in a folder below the one that was started in. */
const sharedos = (...args: readonly string[]): Promise<Ran> =>
  new Promise((resolve) => {
    execFile(process.execPath, [bin, ...args], { cwd: folder, timeout: 30_000 }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err }),
    );
  });
const json = (ran: Ran): Record<string, unknown> => JSON.parse(ran.out) as Record<string, unknown>;

/** Processes that carry our folder's name or descend from `up`, as /proc tells. */
const descendants = async (pid: number): Promise<readonly number[]> => {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const direct = children
    .split(' ')
    .filter((text) => text !== '')
    .map(Number);
  return [...direct, ...(await Promise.all(direct.map(descendants))).flat()];
};
const serverOf = async (pid: number, name: string): Promise<number> => {
  for (const child of await descendants(pid)) {
    const command = await readFile(`/proc/${child}/comm`, 'utf8').catch(() => '');
    if (command.trim() === name) return child;
  }
  throw new Error(`no ${name} below ${pid}`);
};
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const start = async (): Promise<void> => {
  up = spawn(process.execPath, [bin, 'up', '--json'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  up.stdout?.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  up.stderr?.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
  await waitFor(
    'sharedos up is ready',
    () => {
      if (up.exitCode !== null) throw new Error(`sharedos up ended:\n${said}`);
      return out.includes('\n');
    },
    60_000,
  );
  ready = JSON.parse(out) as typeof ready;
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sharedos-up-'));
  await start();
}, 90_000);
afterAll(async () => {
  up?.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

describe('sharedos', () => {
  it('says when it is ready', () => expect(ready).toMatchObject({ ready: true, namespaceId: 'demo' }));

  it('says what it does while it starts', () => expect(said).toMatch(/starting nats-server[\s\S]*starting authorizer/));

  it('writes the credentials for the owner alone', async () => {
    expect((await stat(join(folder, '.sharedos', 'context.json'))).mode & 0o777).toBe(0o600);
  });

  it('does not start a second time in one folder, nor anything of it', async () => {
    const second = await sharedos('up');
    expect(second.code).toBe(1);
    expect(second.err).toContain('up here already');
    expect(second.err).not.toContain('starting');
  });

  it('runs a turn whose call nobody has granted, and names the refusal', async () => {
    const turn = await sharedos(
      'turn',
      'submit',
      '--agent',
      'scout',
      '--purpose',
      'read notes',
      '--call',
      'files.read notes/plan.md',
      '--json',
    );
    expect(turn.code).toBe(1);
    expect(turn.err).toMatch(/files\.read \(tool_unavailable\).*records query --trace [0-9a-f]{32}/);
    expect(json(turn)).toMatchObject({ status: 'succeeded', output: { calls: [{ tool: 'files.read', status: 'denied' }] } });
    expect(turn.out).not.toContain('Buy milk');
  });

  it('does not run an agent that nobody may run, and says how to allow it', async () => {
    const turn = await sharedos(
      'turn',
      'submit',
      '--agent',
      'stranger',
      '--purpose',
      'read notes',
      '--call',
      'files.read notes/plan.md',
      '--json',
    );
    expect(turn.code).toBe(1);
    expect(turn.err).toMatch(/no_matching_grant.*--to agent:stranger --resource sharedos\.execution:agent\/stranger/);
    expect(json(turn)).toMatchObject({ status: 'denied', error: { code: 'no_matching_grant' } });
  });

  it('runs it once it is granted, and no longer when it is revoked', async () => {
    const issued = await sharedos(
      'grant',
      'issue',
      '--to',
      'agent:scout',
      '--resource',
      'files:notes',
      '--action',
      'read',
      '--id',
      'notes-for-scout',
      '--json',
    );
    expect(json(issued)).toMatchObject({ grant: { id: 'notes-for-scout', subject: { kind: 'agent', agentId: 'scout' } } });
    const granted = await sharedos(
      'turn',
      'submit',
      '--agent',
      'scout',
      '--purpose',
      'read notes',
      '--id',
      'turn-1',
      '--call',
      'files.read notes/plan.md',
    );
    expect(granted.err).toBe('');
    expect(granted.out).toMatch(/turn-1 succeeded[\s\S]*✓ +files\.read +succeeded[\s\S]*Buy milk/);
    expect((await sharedos('grant', 'revoke', 'notes-for-scout')).out).toMatch(/^revoked notes-for-scout/);
    const revoked = await sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', '--call', 'files.read notes/plan.md');
    expect(revoked.out).toMatch(/✗ +files\.read +denied/);
    expect(revoked.out).not.toContain('Buy milk');
    expect((await sharedos('grant', 'list')).out).toMatch(/notes-for-scout .*revoked/);
  });

  describe('the same again', () => {
    const lines =
      (...args: readonly string[]) =>
      async (): Promise<readonly Ran[]> => [await sharedos(...args), await sharedos(...args)];
    const grant = ['--to', 'agent:scout', '--resource', 'files:ideas', '--action', 'read', '--json'];

    it('is a grant with the same command id, whose id follows from it', async () => {
      const [first, second] = (await lines('grant', 'issue', ...grant, '--expires', '1h', '--command-id', 'c1')()).map(json);
      expect(second).toEqual(first);
      expect(first).toMatchObject({ grant: { id: expect.stringMatching(/^grant-[0-9a-f]{12}$/) as string } });
    });

    it('is a turn with the same id and the same time; the same id at another time is refused', async () => {
      const turn = ['turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', '--id', 'again-1', '--json'];
      const now = new Date().toISOString();
      const [first, second] = (await lines(...turn, '--at', now)()).map(json);
      expect(first).toMatchObject({ executionId: 'again-1', startedAt: expect.any(String) as string });
      expect(second).toEqual(first);
      const other = await sharedos(...turn);
      expect(other.code).not.toBe(0);
      expect(json(other)).not.toEqual(first);
    });

    it('is a message with the same id and the same time', async () => {
      const inbox = ['--resource', 'sharedos.messaging:human/bob', '--exact', '--action', 'send', '--id', 'write-to-bob'];
      expect((await sharedos('grant', 'issue', '--to', 'human:alice', ...inbox)).code).toBe(0);
      const message = ['message', 'send', 'hello', '--to', 'human:bob', '--purpose', 'greet', '--id', 'hello-1', '--json'];
      const [first, second] = (await lines(...message, '--at', new Date().toISOString())()).map(json);
      expect(first).toMatchObject({ status: 'accepted', messageId: 'hello-1' });
      expect(second).toEqual(first);
    });

    it('is said when nobody answers in time, and never to send it blindly', async () => {
      // Each call is a decision of its own, so that no machine has answered so soon.
      const calls = Array.from({ length: 30 }, () => ['--call', 'files.list']).flat();
      const late = ['--wait-for', '1', '--id', 'late-1', ...calls];
      const turn = await sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', ...late);
      expect([turn.code, turn.err]).toEqual([3, expect.stringContaining('sharedos turn show late-1') as string]);
    });
  });

  it('parks a message for whoever is away, and says so to both', async () => {
    const grant = ['--resource', 'sharedos.messaging:human/bob', '--exact', '--action', 'send', '--id', 'write-to-bob-away'];
    expect((await sharedos('grant', 'issue', '--to', 'human:alice', ...grant)).code).toBe(0);
    const route = (...act: readonly string[]) => sharedos('message', 'route', ...act, '--as', 'human:bob');
    const opened = json(await route('open', '--for', '10m', '--json')) as { readonly route: { readonly lease: number } };
    expect(opened).toMatchObject({ live: true, route: { status: 'open' } });
    expect((await route('pause', String(opened.route.lease))).out).toContain('lapsed at');
    await sharedos('message', 'send', 'later', '--to', 'human:bob', '--purpose', 'greet', '--id', 'away-1');
    expect((await sharedos('message', 'status', 'away-1')).out).toMatch(/^parked since .* until /);
    expect((await route('show')).out).toContain('1 waiting');
    expect((await route('close')).out).toContain('closed since');
    expect((await sharedos('message', 'status', 'away-1')).out).toMatch(/^revoked since .* \(route_closed\)/);
    const renewed = await route('renew', String(opened.route.lease));
    expect([renewed.code, renewed.err]).toEqual([1, expect.stringContaining('route_lease_ended') as string]);
    expect((await route('forget')).out).toContain('no route');
  });

  it('passes on a grant, as the help shows it', async () => {
    const scope = ['--resource', 'files:notes', '--action', 'read'];
    expect((await sharedos('grant', 'issue', '--to', 'agent:scout', ...scope, '--depth', '1', '--id', 'grant-1')).code).toBe(0);
    const derive = ['grant', 'derive', 'grant-1', '--as', 'agent:scout', '--to', 'human:bob', '--action', 'read', '--json'];
    const derived = await sharedos(...derive, '--resource', 'files:notes/ideas');
    expect(json(derived)).toMatchObject({ grant: { capabilities: [{ resource: { owner: { kind: 'human', userId: 'alice' } } }] } });
    const wider = await sharedos(...derive, '--resource', 'files:');
    expect([wider.code, wider.err]).toEqual([1, expect.stringContaining('must lie within one capability') as string]);
    await sharedos('grant', 'revoke', 'grant-1');
  });

  it('shows a grant that has expired as such, and says so when it is issued', async () => {
    const past = ['--expires', '2020-01-01T00:00:00Z', '--id', 'too-late'];
    const issued = await sharedos('grant', 'issue', '--to', 'agent:scout', '--resource', 'files:notes', '--action', 'read', ...past);
    expect(issued.err).toMatch(/too-late expired/);
    expect((await sharedos('grant', 'list')).out).toMatch(/too-late .*expired/);
  });

  it('shows a turn that has ended, and does not cancel it', async () => {
    expect((await sharedos('turn', 'show', 'turn-1')).out).toContain('turn-1 succeeded');
    expect(json(await sharedos('turn', 'cancel', 'turn-1', '--json'))).toEqual({ executionId: 'turn-1', outcome: 'ended' });
    expect((await sharedos('turn', 'list', '--json')).out).toContain('"turn-1"');
  });

  it('answers the auditor what was decided, and nobody else', async () => {
    const records = await waitFor(
      'the records of the turn',
      async () => {
        const ran = await sharedos('records', 'query', '--operation', 'turn-1', '--json');
        return ran.code === 0 && ran.out.includes('turn-1') ? ran : undefined;
      },
      15_000,
    );
    expect(records.out).not.toContain('Buy milk');
    expect((await sharedos('records', 'query', '--as', 'human:bob')).code).toBe(1);
    const tail = await sharedos('audit', 'tail', '--as', 'human:bob', '--json');
    expect([tail.code, json(tail)]).toEqual([
      1,
      { error: { code: 'not_permitted', message: expect.stringContaining('not configured as an auditor') as string } },
    ]);
  });

  it('follows the audit', async () => {
    let heard = false;
    const tailing = sharedos('audit', 'tail', '--count', '1', '--json').finally(() => (heard = true));
    await waitFor(
      'a record on the feed',
      async () => {
        // A subscription hears nothing of the past, so there is something new to hear until it has heard.
        await sharedos('turn', 'submit', '--agent', 'stranger', '--purpose', 'be refused');
        return heard;
      },
      15_000,
    );
    expect(json(await tailing)).toMatchObject({ sequence: expect.any(Number) as number, event: { namespaceId: 'demo' } });
  });

  it.each([
    [['grant', 'revoke', 'no-such-grant'], 1],
    [['turn', 'submit', '--agent', 'scout'], 2],
    [['turn', 'list', '--as', 'human:nobody'], 2],
    [['turn', 'list', '--state', 'asleep'], 2],
    [['no-such-command'], 2],
    [['turn', 'list', '--context', 'nowhere.json'], 3],
  ])('%j ends with exit code %i and a line that says why', async (args, code) => {
    const ran = await sharedos(...args);
    expect(ran.code).toBe(code);
    expect(ran.err).not.toBe('');
    expect(json(await sharedos(...args, '--json'))).toMatchObject({ error: { code: expect.any(String) as string } });
  });

  it('ends quietly when nobody reads what it prints', async () => {
    const child = spawn(process.execPath, [bin, '--help'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let err = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
    child.stdout.destroy();
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    expect([code, err]).toEqual([0, '']);
  });

  it('prints variables for the plain nats command line', async () => {
    const { out } = await sharedos('env', '--as', 'human:bob');
    expect(out).toMatch(
      /^export NATS_URL='nats:\/\/127\.0\.0\.1:\d+'\nexport NATS_USER='principal\.demo\.human\.bob'\nexport NATS_PASSWORD='[^']+'\nexport SHAREDOS_INBOX='_INBOX\.demo\.human\.bob'\n$/,
    );
  });

  it('leaves no process and no file when it is told to stop', async () => {
    const children = await descendants(up.pid as number);
    expect(children.length).toBeGreaterThanOrEqual(6);
    const ended = new Promise<number | null>((resolve) => up.once('close', resolve));
    up.kill('SIGINT');
    expect(await ended).toBe(0);
    await waitFor('the children are gone', () => !children.some(alive), 5_000);
    expect(await readdir(folder)).toEqual([]);
  }, 40_000);

  it('says to whoever follows the audit that nothing can be heard, and stops itself, when a server of its own dies', async () => {
    await start();
    const tail = spawn(process.execPath, [bin, 'audit', 'tail'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    let tailSaid = '';
    tail.stderr.setEncoding('utf8').on('data', (chunk: string) => (tailSaid += chunk));
    try {
      await waitFor('the tail watches', () => tailSaid.includes('watching as'), 15_000);
      const nats = await serverOf(up.pid as number, 'nats-server');
      const ended = new Promise<number | null>((resolve) => up.once('close', resolve));
      process.kill(nats, 'SIGKILL');
      expect(await ended).toBe(3);
      expect(said).toContain('nats-server ended by itself');
      expect(await readdir(folder)).toEqual([]);
      await waitFor('the tail says so', () => tailSaid.includes('the connection is lost'), 15_000);
    } finally {
      tail.kill('SIGKILL');
    }
  }, 60_000);
});
