import { type Address, type AuditEvent, type AuthorityTools, err, ok, unavailable } from '@sharedos/contracts';
import { countingIds } from '@sharedos/testing';
import { ToolRegistry } from '@sharedos/tools';
import { describe, expect, it } from 'vitest';
import { familiesOn } from './context-tools.ts';
import { listTools, pageOf } from './list-tools.ts';
import type { Ports } from './ports.ts';
import { readToolNamespaces, updateToolNamespaces } from './tool-namespaces.ts';
import { REVISION, alice, opened, scout, toolThat, turnWorld, call } from './turn.fixture.ts';

const root = { kind: 'human', userId: 'root' } as const;

/** An executor with files and repo, the operator allowing both, whose authorizer answers as told. */
const executor = (chosen?: readonly string[]) => {
  const registry = new ToolRegistry();
  for (const [name, namespace] of [
    ['files.read', 'files'],
    ['files.list', 'files'],
    ['repo.log', 'repo'],
    ['dark.tool', 'dark'],
  ] as const)
    registry.register(toolThat(name, undefined, namespace));
  const records: AuditEvent[] = [];
  const asked: AuthorityTools[] = [];
  const world = { auditWorks: true, mayUpdate: true, discovers: (_: string): boolean => true };
  const selection = chosen === undefined ? {} : { toolNamespaces: [...chosen] };
  const ports = {
    registry,
    rules: { toolNamespaces: ['files', 'repo'] },
    roots: { w1: [root] },
    ids: countingIds('id'),
    clock: () => Date.parse('2026-01-01T12:00:00Z'),
    audit: async (event: AuditEvent) => (world.auditWorks ? ok(void records.push(event)) : unavailable('full')),
    authority: {
      namespace: async () => ok({ revision: REVISION, settings: {}, policyVersion: 0, ...selection }),
      open: async () => ok({ ...opened, hostPolicyVersion: '7', ...selection }),
      decide: async () => err({ code: 'authority_unavailable', reason: 'silence' }),
      reach: async (_: string, __: object, ceilings: readonly object[]) =>
        ok({
          revision: REVISION,
          reach: { status: 'computed', reach: [] },
          discovered: ceilings.map(() => ({ allowed: world.discovers(''), reasonCode: 'no_matching_grant' })),
        }),
    },
    bus: {
      request: async (_: string, __: object, body: AuthorityTools) => {
        asked.push(body);
        if (!world.mayUpdate) return ok({ ok: false, error: { code: 'not_an_administrator', message: 'no', retryable: false } });
        return ok({ ok: true, value: { enabled: ['repo', 'unknown'], revision: REVISION } });
      },
    },
  } as unknown as Ports;
  const delivery = (principal: Address, verb: 'tools.list' | 'tools.namespaces' | 'tools.update') => ({
    namespaceId: 'w1',
    rest: [],
    signal: new AbortController().signal,
    verb,
    principal,
  });
  return {
    world,
    records,
    asked,
    read: (by: Address) => readToolNamespaces(ports)({}, delivery(by, 'tools.namespaces')),
    update: (by: Address) => updateToolNamespaces(ports)({ commandId: 'c1', update: { enable: ['repo'] } }, delivery(by, 'tools.update')),
    list: (more: object = {}) => listTools(ports)({ purpose: 'p1', ...more }, delivery(alice, 'tools.list')),
  };
};

const on = (reply: Awaited<ReturnType<ReturnType<typeof executor>['read']>>) =>
  reply.ok ? reply.value.catalog.namespaces.filter(({ enabled }) => enabled).map(({ namespace }) => namespace) : reply.error.code;

describe('which families of tools are on', () => {
  it('are all that the operator allows, where nobody chose', () =>
    expect(familiesOn(['files', 'repo'], undefined)).toEqual(['files', 'repo']));
  it('are what was chosen, of what the operator allows', () => expect(familiesOn(['files', 'repo'], ['repo', 'dark'])).toEqual(['repo']));
  it('are none, where none was chosen', () => expect(familiesOn(['files'], [])).toEqual([]));

  it('is read by an administrator, and recorded', async () => {
    const { read, records } = executor(['repo', 'dark']);
    expect(on(await read(root))).toEqual(['repo']);
    expect(records.map(({ type, metadata }) => [type, metadata])).toEqual([
      ['tool.namespace.catalog.listed', { totalNamespaces: 3, enabledNamespaces: 1, revision: REVISION }],
    ]);
  });
  it('is told to nobody else', async () => {
    const { read, records } = executor();
    expect(on(await read(scout))).toBe('authority_unavailable');
    expect(records.some(({ type }) => type === 'tool.namespace.catalog.listed')).toBe(false);
  });
  it('is not told when the reading cannot be recorded', async () => {
    const { read, world } = executor();
    world.auditWorks = false;
    expect(on(await read(root))).toBe('audit_unavailable');
  });
  it('is changed through the log, named for who asked, and the answer is what took effect', async () => {
    const { update, asked, records } = executor();
    expect(on(await update(alice))).toEqual(['repo']);
    expect(asked).toEqual([{ commandId: 'c1', by: alice, update: { enable: ['repo'] }, whenUnset: ['files', 'repo'] }]);
    expect(records.map(({ type, metadata }) => [type, metadata])).toEqual([
      ['tool.namespace.selection.updated', { enabledNamespaces: ['repo'], revision: REVISION }],
    ]);
  });
  it('stays changed when the record of it is late', async () => {
    const { update, world } = executor();
    world.auditWorks = false;
    expect(on(await update(alice))).toEqual(['repo']);
  });
  it('is not changed by whom the authorizer refuses', async () => {
    const { update, world, records } = executor();
    world.mayUpdate = false;
    expect(on(await update(alice))).toBe('not_an_administrator');
    expect(records).toEqual([]);
  });
});

describe('a listing of tools', () => {
  it('holds what is on and may be discovered, and its record says under which policy', async () => {
    const { list, records } = executor(['files']);
    const listed = await list();
    expect(listed.ok && listed.value.tools.map(({ name }) => name)).toEqual(['files.list', 'files.read']);
    expect(records).toMatchObject([
      { type: 'tool.catalog.listed', metadata: { enabledNamespaces: ['files'], withheldCount: 2, hostPolicyVersion: '7' } },
    ]);
  });
  it('is empty for whom no grant lets discover any', async () => {
    const { list, world } = executor();
    world.discovers = () => false;
    expect(await list()).toMatchObject({ ok: true, value: { tools: [], total: 0 } });
  });
  it('is not told when it cannot be recorded', async () => {
    const { list, world } = executor();
    world.auditWorks = false;
    expect(await list()).toMatchObject({ ok: false, error: { code: 'audit_unavailable' } });
  });
  it('comes in pages, each saying where the next begins', async () => {
    const { list } = executor();
    const first = await list({ limit: 2 });
    expect(first.ok && [first.value.tools.length, first.value.total, first.value.next]).toEqual([2, 3, 'files.read']);
    const second = await list({ limit: 2, after: 'files.read' });
    expect(second.ok && [second.value.tools.map(({ name }) => name), second.value.next]).toEqual([['repo.log'], undefined]);
  });
  it('ends a page that grows too large, and leaves no tool out', () => {
    const tools = Array.from({ length: 5 }, (_, index) => ({ name: `t${index}`, description: 'x'.repeat(1_200_000), inputSchema: {} }));
    const names: string[] = [];
    for (let after: string | undefined, more = true; more;) {
      const page = pageOf(tools, after, 512);
      expect(page.tools).toHaveLength(1);
      names.push(...page.tools.map(({ name }) => name));
      after = page.next;
      more = after !== undefined;
    }
    expect(names).toEqual(tools.map(({ name }) => name));
  });
});

describe('a turn of a namespace that chose', () => {
  const tools = [toolThat('files.read'), toolThat('repo.log', undefined, 'repo')];
  it('is offered none of a family that is off, and a call of it is refused', async () => {
    const world = await turnWorld({ tools, opens: () => ok({ ...opened, toolNamespaces: ['repo'], hostPolicyVersion: '7' }) });
    await world.begin();
    expect(await world.invoke(call('c1'))).toMatchObject({ status: 'denied', error: { code: 'tool_unavailable' } });
    const audit = await world.audit();
    expect(audit.find(({ type }) => type === 'tool.catalog.listed')?.metadata).toMatchObject({
      enabledNamespaces: [],
      hostPolicyVersion: '7',
    });
    expect(audit.at(-1)).toMatchObject({ type: 'tool.invoked', metadata: { cause: 'namespace_disabled' } });
  });
});
