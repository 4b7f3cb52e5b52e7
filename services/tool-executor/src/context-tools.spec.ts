import { err, ok } from '@sharedos/contracts';
import { type ToolHandler, ToolRegistry } from '@sharedos/tools';
import { describe, expect, it } from 'vitest';
import { registryFor } from './context-tools.ts';
import { alice, toolThat } from './turn.fixture.ts';

const of = { namespaceId: 'w1', owner: alice };
const registry = new ToolRegistry();
registry.register(toolThat('files.read'));
const names = async (contextTools: () => Promise<ReturnType<typeof ok<readonly ToolHandler[]>> | ReturnType<typeof err<string>>>) => {
  const known = await registryFor({ registry, contextTools }, of);
  return known.ok ? known.value.definitions().map(({ name }) => name) : known.error;
};

describe('the tools of one context', () => {
  it('are those of everybody, and those of its owner', async () =>
    expect(await names(async () => ok([toolThat('mcp.crm.read')]))).toEqual(['files.read', 'mcp.crm.read']));

  it('leave the tools of everybody else as they are', async () => {
    const own = [toolThat('mcp.crm.read')];
    const first = await registryFor({ registry, contextTools: async () => ok(own) }, of);
    if (first.ok) first.value.register(toolThat('of.this.turn'));
    expect(await names(async () => ok(own))).toEqual(['files.read', 'mcp.crm.read']);
    expect(registry.definitions()).toHaveLength(1);
  });

  it.each<[string, () => Promise<never> | Promise<ReturnType<typeof ok<readonly ToolHandler[]>> | ReturnType<typeof err<string>>>]>([
    ['nobody can tell', async () => err('authority_unavailable')],
    ['whoever tells throws', async () => Promise.reject(new Error('away'))],
    ['two have one name', async () => ok([toolThat('files.read')])],
    ['one is none', async () => ok([{ ...toolThat('mcp.crm.read'), definition: {} } as unknown as ToolHandler])],
  ])('are none, and not some of them, where %s', async (_, told) => expect(await names(told)).toBe('tool_catalog_unavailable'));
});
