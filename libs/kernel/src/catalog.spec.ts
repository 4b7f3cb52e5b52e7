import { PublishedTool, ToolCatalog, type ToolDefinition, hashOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import {
  buildToolCatalog,
  catalogHash,
  formatCatalogHash,
  portableToolName,
  publishToolCatalog,
  publishToolDefinition,
  toolCatalogHash,
} from './catalog.ts';
import { frozenCopy } from './contract-value.ts';
import { Defect } from './decider.ts';
import { read } from './testing/base-world.ts';

const tool = (name: string, changes: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: 'Reads one file.',
  namespace: 'files',
  source: 'sharedos',
  readWrite: 'read',
  inputSchema: { type: 'object' },
  requiredCapability: read([]),
  metadata: { secret: true },
  ...changes,
});

describe('a published tool', () => {
  it('shows name, description, schemas, hints and where it comes from, and nothing else', () =>
    expect(publishToolDefinition(tool('files.read'))).toEqual({
      name: 'files.read',
      description: 'Reads one file.',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      metadata: { namespace: 'files', source: 'sharedos' },
    }));
  it('states only the hints its definition states, and read-only always', () =>
    expect(
      publishToolDefinition(tool('files.delete', { readWrite: 'write', annotations: { destructive: true, idempotent: false } }))
        .annotations,
    ).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
    }));
  it('prefers a stated read-only to the class', () =>
    expect(publishToolDefinition(tool('x', { annotations: { readOnly: false } })).annotations?.readOnlyHint).toBe(false));
  it('meets its contract', () =>
    expect(PublishedTool.parse(publishToolDefinition(tool('x', { outputSchema: {} })))).toEqual(
      publishToolDefinition(tool('x', { outputSchema: {} })),
    ));
});

describe('a catalogue', () => {
  const three = [tool('b'), tool('a.b'), tool('B')];
  const tools = publishToolCatalog(three);
  const hashed = (...definitions: ToolDefinition[]): string => toolCatalogHash(publishToolCatalog(definitions));
  it('is sorted by code unit', () => expect(tools.map(({ name }) => name)).toEqual(['B', 'a.b', 'b']));
  it('meets its contract', async () => {
    const catalog = await buildToolCatalog(three, { executionId: 'e-1' });
    expect(ToolCatalog.parse(catalog)).toEqual(catalog);
    expect(catalog).toEqual({ version: '1', executionId: 'e-1', catalogHash: await catalogHash(tools), tools });
  });
  it('has the hash of its sorted tools', () => expect(toolCatalogHash(tools)).toBe(hashOf(tools)));
  it('has the same hash in another order', () => expect(toolCatalogHash(tools.toReversed())).toBe(toolCatalogHash(tools)));
  it('has a hash over its stated fields alone', () =>
    expect(toolCatalogHash(tools.map((one) => ({ ...one, alias: 'x' })))).toBe(toolCatalogHash(tools)));
  it('names the algorithm where its hash is shown', () => expect(formatCatalogHash('ab')).toBe('sha256:ab'));
  it('has its own hash beside another that begins with the same tool', () => {
    const [one, two, other] = publishToolCatalog([frozenCopy(tool('a')), frozenCopy(tool('b')), frozenCopy(tool('c'))]);
    if (one === undefined || two === undefined || other === undefined) throw new Error('no tools');
    for (const list of [[one, two], [one, other], [one], [one, two, other], [one, two]]) expect(toolCatalogHash(list)).toBe(hashOf(list));
  });
  it('has another hash as soon as somebody changes a tool that could be changed', () => {
    const mutable = publishToolDefinition(tool('a'));
    const before = toolCatalogHash([mutable]);
    (mutable as { description: string }).description = 'Other.';
    expect(toolCatalogHash([mutable])).not.toBe(before);
  });
  it('has the same hash whatever its tools require', () =>
    expect(hashed(tool('a', { requiredCapability: read(['x']) }))).toBe(hashed(tool('a'))));
  it('has another hash when a description changes', () => expect(hashed(tool('a', { description: 'Other.' }))).not.toBe(hashed(tool('a'))));
  it('of nothing has the known hash', () =>
    expect(toolCatalogHash([])).toBe('4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'));
  it('with one name twice is a broken registry', () => expect(() => publishToolCatalog([tool('a'), tool('a')])).toThrow(Defect));
});

it('a portable name replaces every dot', () => expect(portableToolName('files.snapshot.create')).toBe('files_snapshot_create'));

describe('a definition that can never change', () => {
  const parts = { inputSchema: { type: 'object', properties: { path: { type: 'array' } } }, outputSchema: { b: 1, a: 2 } };
  it('is published once, and hashed as one that may change', () => {
    const kept = frozenCopy(tool('files.read', parts));
    expect(publishToolDefinition(kept)).toBe(publishToolDefinition(kept));
    expect(toolCatalogHash(publishToolCatalog([kept]))).toBe(toolCatalogHash(publishToolCatalog([tool('files.read', parts)])));
    expect(toolCatalogHash(publishToolCatalog([kept]))).toBe(hashOf([publishToolDefinition(tool('files.read', parts))]));
  });
  it('is not one of which only the outside is frozen: its hash follows what is in it', () => {
    const inputSchema: Record<string, unknown> = { type: 'object' };
    const outside = Object.freeze(tool('files.read', { inputSchema: inputSchema as ToolDefinition['inputSchema'] }));
    const before = toolCatalogHash(publishToolCatalog([outside]));
    inputSchema['title'] = 'changed';
    expect(toolCatalogHash(publishToolCatalog([outside]))).not.toBe(before);
  });
});
