import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Address } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import type { McpLimits } from '@sharedos/tools';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { isAlive } from '../../libs/testing/src/alive.ts';
import { ALICE, BOB, CUSTOMER, IMPATIENT, type McpWorld, codeOf, mcpWorld } from './mcp-tools-world.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let world: McpWorld;
const begin = (...options: Parameters<typeof mcpWorld>): McpWorld => {
  world = mcpWorld(...options);
  return world;
};
afterEach(() => world.stop());

const honest = async (owner: Address = ALICE) => {
  const own = world.own('honest', owner);
  return { own, server: await world.approved(own, CUSTOMER) };
};
/** What a call is answered when the tools were approved while the server was honest, and it is something else by now. */
const callOf = async (mode: string, limits?: Parameters<typeof mcpWorld>[0]): Promise<string> => {
  begin();
  const { server } = await honest();
  if (limits !== undefined) {
    await world.stop();
    begin(limits);
  }
  return codeOf(await world.call(world.own(mode), server, 'mcp.crm.read', { customerId: 'acme' }));
};

describe('a tool of an MCP server', () => {
  it('is used for the customer that was granted, and refused for the next one', async () => {
    begin();
    const { own, server } = await honest();
    const paths = [['crm', 'customers', 'acme']];
    const ask = async (customerId: unknown) => codeOf(await world.call(own, server, 'mcp.crm.read', { customerId } as never, { paths }));
    expect(await ask('acme')).toBe('succeeded');
    expect(await ask('blue-door')).toBe('no_matching_grant');
    expect(await ask('ACME')).toBe('no_matching_grant');
  });

  it.each<[string, unknown]>([
    ['a way up', '../blue-door'],
    ['white space that the server would cut', ' acme'],
    ['several', ['acme', 'blue-door']],
    ['none', undefined],
    ['an object', { toString: 'acme' }],
  ])('is refused for %s in place of a customer', async (_, customerId) => {
    begin();
    const { own, server } = await honest();
    const args = (customerId === undefined ? {} : { customerId }) as never;
    const result = await world.call(own, server, 'mcp.crm.read', args, { paths: [['crm', 'customers', 'acme']] });
    expect(codeOf(result)).toBe('tool_requirement_resolution_failed');
  });

  it('is refused with an argument that it was not approved with: it may be another name of the one decided on', async () => {
    begin();
    const { own, server } = await honest();
    const result = await world.call(own, server, 'mcp.crm.read', { customerId: 'acme', customer_id: 'blue-door' });
    expect(codeOf(result)).toBe('invalid_tool_arguments');
  });

  it('asks no server anything before it is called', async () => {
    begin();
    const { server } = await honest();
    const gone = world.own('dies-at-start');
    expect(codeOf(await world.call(gone, server, 'mcp.crm.other', {}))).toBe('tool_unavailable');
  });
});

describe('a server that changes a tool after it was approved', () => {
  it.each(['changes', 'renames', 'swaps-schema'])('(%s) does not get the call, and is told of', async (mode) => {
    begin();
    const own = world.own(mode);
    const server = await world.approved(own);
    expect(server.tools.map(({ name }) => name)).toEqual(['read']);
    expect(codeOf(await world.call(own, server, 'mcp.crm.read', { customerId: 'acme' }))).toBe('mcp_tool_changed');
    expect(world.changed).toEqual(['read']);
  });

  it('has its tool off until it is approved again', async () => {
    begin();
    const { own, server } = await honest();
    expect(codeOf(await world.call(own, { ...server, changed: ['read'] }, 'mcp.crm.read', { customerId: 'acme' }))).toBe(
      'tool_unavailable',
    );
  });
});

describe('a server that does not do its part', () => {
  it.each([
    ['dies-at-start', 'mcp_server_unavailable'],
    ['floods-at-start', 'mcp_server_unavailable'],
    ['list-without-end', 'mcp_list_refused'],
    ['list-in-a-circle', 'mcp_list_refused'],
    ['many', 'mcp_list_refused'],
    ['dies-in-call', 'mcp_call_interrupted'],
    ['large', 'mcp_call_interrupted'],
    ['one-long-line', 'mcp_call_interrupted'],
    ['endless-line', 'mcp_call_interrupted'],
    ['floods', 'mcp_call_interrupted'],
    ['pings', 'mcp_call_interrupted'],
    ['progresses', 'mcp_call_interrupted'],
    ['tells-of-changes', 'mcp_call_interrupted'],
    ['just-too-large', 'invalid_tool_result'],
    ['deep', 'invalid_tool_result'],
    ['fails-as-result', 'mcp_tool_failed'],
    ['junk', 'succeeded'],
    ['asks-back', 'succeeded'],
  ])('(%s) ends the call as %s', async (mode, code) => expect(await callOf(mode)).toBe(code));

  it.each<[string, Partial<McpLimits>, string]>([
    ['silent', { connectMs: IMPATIENT.connectMs as number }, 'mcp_server_unavailable'],
    ['list-never', { listMs: IMPATIENT.listMs as number }, 'mcp_server_unavailable'],
    ['never-answers', { callMs: IMPATIENT.callMs as number }, 'mcp_call_timed_out'],
    ['other-id', { callMs: IMPATIENT.callMs as number }, 'mcp_call_timed_out'],
  ])('(%s) is not waited for beyond its deadline', async (mode, limits, code) => expect(await callOf(mode, limits)).toBe(code));

  it('that answers with nothing of a result ends the call as failed', async () =>
    expect(['mcp_call_interrupted', 'mcp_tool_failed', 'invalid_tool_result']).toContain(await callOf('no-result')));

  it('cannot put a member into a result that every object has', async () => {
    begin();
    const { server } = await honest();
    const result = await world.call(world.own('proto'), server, 'mcp.crm.read', { customerId: 'acme' });
    expect(JSON.stringify(result)).not.toContain('allowed');
  });

  it('says nothing of itself where it fails a call in the words of the protocol', async () => {
    begin();
    const { server } = await honest();
    const result = await world.call(world.own('fails'), server, 'mcp.crm.read', { customerId: 'acme' });
    expect(codeOf(result)).toBe('mcp_tool_failed');
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  it('does not hold a turn that ends', async () => {
    begin({ callMs: 600_000, connectMs: 600_000, listMs: 600_000 });
    const { server } = await honest();
    for (const mode of ['never-answers', 'silent']) {
      const turn = new AbortController();
      const called = world.call(world.own(mode), server, 'mcp.crm.read', { customerId: 'acme' }, { signal: turn.signal });
      turn.abort();
      expect(codeOf(await called.catch(() => ({ status: 'failed', error: { code: 'aborted' } }) as never))).toMatch(/aborted|cancelled/);
    }
  });

  it('is not started anew for every call while it cannot be had', async () => {
    begin({ retryMs: 600_000 });
    const { server } = await honest();
    const own = world.own('dies-at-start');
    for (let n = 0; n < 50; n += 1) {
      expect(codeOf(await world.call(own, server, 'mcp.crm.read', { customerId: 'acme' }))).toBe('mcp_server_unavailable');
    }
  });
});

describe('the tools that a server tells of', () => {
  it('are refused one by one, by name and with the reason, where they cannot be used', async () => {
    begin();
    const { tools, refused } = await world.told(world.own('odd-names'));
    expect(tools.map(({ name }) => name)).toEqual(['read']);
    expect(refused.map(({ name }) => name)).toEqual(['rm -rf /', 'a'.repeat(64), 'twice', '?read', 'long', 'large', 'no-object', '?']);
  });

  it('are refused and not cut where there are more than are taken', async () => {
    begin();
    await expect(world.told(world.own('many'))).rejects.toThrow('mcp_list_refused');
  });
});

describe('the connections of an executor', () => {
  const named = (n: number, owner: Address = ALICE) => ({ ...world.own('honest', owner), server: `s${n}` });
  const opened = async (own: ReturnType<typeof named>) => {
    const connection = await world.pool.connection(own);
    if (!connection.ok) throw new Error(connection.error);
    return connection.value;
  };

  it('are so many for one owner, and give up the one that is not used for one that is', async () => {
    begin({ connectionsOfOwnerMax: 2 });
    const first = await opened(named(1));
    const second = await opened(named(2));
    const bobs = await opened(named(1, BOB));
    const third = await opened(named(3));
    expect([first, second, bobs, third].map((one) => one.isOpen)).toEqual([false, true, true, true]);
  });

  it('are refused past that while all are in use', async () => {
    begin({ connectionsOfOwnerMax: 1, callMs: 600_000 });
    const { server } = await honest();
    const turn = new AbortController();
    const own = world.own('never-answers');
    const busy = world.call(own, server, 'mcp.crm.read', { customerId: 'acme' }, { signal: turn.signal });
    const connection = await opened(own);
    await waitFor('the call to be under way', () => connection.isBusy, 20_000);
    await connection.tools();
    await waitFor('the call to be under way', () => connection.isBusy, 20_000);
    expect(await world.pool.connection(named(1))).toEqual({ ok: false, error: 'mcp_server_unavailable' });
    turn.abort();
    await busy.catch(() => undefined);
  });
});

describe('the process of a server', () => {
  const environment = async (owner: Address = ALICE): Promise<{ env: Record<string, string>; cwd: string; calls: number }> => {
    const own = world.own('environment', owner);
    const server = await world.approved(own);
    const result = await world.call(own, server, 'mcp.crm.read', { customerId: 'acme' });
    if (result.status !== 'succeeded') throw new Error(codeOf(result));
    return JSON.parse((result.output as { content: { text: string }[] }).content[0]?.text ?? '') as never;
  };

  it('has what the operator gave it and the secrets of its owner, and nothing of the environment of the executor', async () => {
    begin();
    process.env['NATS_PASSWORD_OF_A_TEST'] = 'not for servers';
    await world.secrets.put(world.own('environment'), 'API_KEY', 'of alice');
    await world.secrets.put(world.own('environment'), 'NODE_OPTIONS', '--require=/tmp/evil.js');
    const { env } = await environment();
    delete process.env['NATS_PASSWORD_OF_A_TEST'];
    expect(env).toMatchObject({ SHARED: 'by the operator', API_KEY: 'of alice' });
    expect(
      Object.keys(env).filter((name) => !['PATH', 'HOME', 'SHARED', 'FOLDER', 'API_KEY', '__CF_USER_TEXT_ENCODING'].includes(name)),
    ).toEqual([]);
  });

  it('is another one for each owner, with another folder and other secrets', async () => {
    begin();
    await world.secrets.put(world.own('environment', ALICE), 'API_KEY', 'of alice');
    const [alices, bobs] = [await environment(ALICE), await environment(BOB)];
    expect(bobs.env['API_KEY']).toBeUndefined();
    expect(bobs.env['FOLDER']).not.toBe(alices.env['FOLDER']);
    expect([alices.calls, bobs.calls]).toEqual([1, 1]);
  });

  it('is another one as soon as its secret is another one', async () => {
    begin();
    const own = world.own('environment');
    await world.secrets.put(own, 'API_KEY', 'first');
    expect((await environment()).env['API_KEY']).toBe('first');
    await world.secrets.put(own, 'API_KEY', 'second');
    expect((await environment()).env['API_KEY']).toBe('second');
  });

  it('is started by nobody whom the operator’s list does not have', async () => {
    begin({}, { processes: new Map() });
    const connection = await world.pool.connection({ ...world.own('sh'), place: { kind: 'process', process: 'sh' } });
    expect(connection).toEqual({ ok: false, error: 'mcp_server_unavailable' });
  });

  it.each(['stays', 'leaves-a-child'])('(%s) ends with the executor, and whatever it started too', async (mode) => {
    begin();
    await world.told(world.own(mode));
    const pids = JSON.parse(readFileSync(join(world.folder, 'pids'), 'utf8')) as number[];
    expect(pids.every(isAlive)).toBe(true);
    await world.pool.stop();
    await waitFor('the end of its processes', () => !pids.some(isAlive), 10_000);
  });

  it('keeps what it keeps in a folder of its own', async () => {
    begin();
    const { env } = await environment();
    expect(existsSync(env['FOLDER'] ?? '')).toBe(true);
    expect(env['FOLDER']).toContain(join('demo', 'human', 'alice', 'crm'));
  });
});
