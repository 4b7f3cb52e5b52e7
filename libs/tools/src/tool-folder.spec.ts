import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AccessContext, type CapabilityGrant, timestampOf } from '@sharedos/contracts';
import { ContractError, SharedOSKernel } from '@sharedos/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadTools } from './tool-folder.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples/tools');
const NOW = '2026-01-01T12:00:00Z';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'own-tools-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the example of a tool of your own', () => {
  const scout = { kind: 'agent', agentId: 'scout' } as const;
  const alice = { kind: 'human', userId: 'alice' } as const;
  const context = (enabledToolNamespaces: string[]): AccessContext => ({
    namespaceId: 'demo',
    actor: scout,
    authority: alice,
    owner: alice,
    purpose: 'prepare the call',
    traceId: 'trace',
    enabledToolNamespaces,
    now: timestampOf(Date.parse(NOW)),
  });
  const grant: CapabilityGrant = {
    id: 'acme',
    namespaceId: 'demo',
    subject: scout,
    issuer: alice,
    capabilities: [{ resource: { namespace: 'customers', path: ['acme'] }, actions: ['read'], scope: 'exact' }],
    constraints: {},
    issuedAt: '2026-01-01T09:00:00Z',
  };
  const ask = async (customerId: unknown, on: string[] = ['customers'], grants: CapabilityGrant[] = [grant]): Promise<string> => {
    const kernel = new SharedOSKernel({ grantSource: { load: async () => grants } });
    for (const tool of await loadTools(EXAMPLES)) kernel.registerTool(tool);
    const call = { id: 'call', tool: 'customers.read', arguments: { customerId } as never, traceId: 'trace', requestedAt: context(on).now };
    const result = await kernel.invokeTool(context(on), call);
    return result.status === 'succeeded' ? 'succeeded' : result.error.code;
  };

  it('is used for the customer that was granted', async () => expect(await ask('acme')).toBe('succeeded'));
  it('is refused for every other customer', async () => expect(await ask('blue-door')).toBe('no_matching_grant'));
  it('is refused where its namespace is off', async () => expect(await ask('acme', [])).toBe('tool_unavailable'));
  it('is refused without a grant', async () => expect(await ask('acme', ['customers'], [])).toBe('tool_unavailable'));
  it('is refused what is no customer at all', async () => expect(await ask('../acme')).toBe('invalid_tool_arguments'));
});

describe('a folder of tools', () => {
  it.each<[string, Readonly<Record<string, string>>]>([
    ['nothing in it', {}],
    ['a module that cannot be read', { 'a.mjs': 'export const tools = [' }],
    ['a module that throws', { 'a.mjs': 'throw new Error("no")' }],
    ['a module without tools', { 'a.mjs': 'export const tool = {}' }],
    ['a list of nothing', { 'a.mjs': 'export const tools = []' }],
    ['what is no tool', { 'a.mjs': 'export const tools = [{ definition: {} }]' }],
  ])('with %s ends the start, naming it', async (_title, modules) => {
    for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, name), text);
    await expect(loadTools(folder)).rejects.toThrow(ContractError);
    await expect(loadTools(folder)).rejects.toThrow(folder);
  });

  it('that is not there ends the start', () => expect(loadTools(join(folder, 'none'))).rejects.toThrow(ContractError));
  it('and a package that is not installed, too', () => expect(loadTools('no-such-package-of-tools')).rejects.toThrow(ContractError));
});
