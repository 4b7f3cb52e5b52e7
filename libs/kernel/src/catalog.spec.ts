import { PublishedTool, ToolCatalog, type ToolDefinition, hashOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { catalogHash, portableToolName, publishTool, publishToolCatalog } from './catalog.ts';
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
    expect(publishTool(tool('files.read'))).toEqual({
      name: 'files.read',
      description: 'Reads one file.',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      metadata: { namespace: 'files', source: 'sharedos' },
    }));
  it('states only the hints its definition states, and read-only always', () =>
    expect(
      publishTool(tool('files.delete', { readWrite: 'write', annotations: { destructive: true, idempotent: false } })).annotations,
    ).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
    }));
  it('prefers a stated read-only to the class', () =>
    expect(publishTool(tool('x', { annotations: { readOnly: false } })).annotations?.readOnlyHint).toBe(false));
  it('meets its contract', () =>
    expect(PublishedTool.parse(publishTool(tool('x', { outputSchema: {} })))).toEqual(publishTool(tool('x', { outputSchema: {} }))));
});

describe('a catalogue', () => {
  const catalog = publishToolCatalog('e-1', [tool('b'), tool('a.b'), tool('B')]);
  it('is sorted by code unit', () => expect(catalog.tools.map(({ name }) => name)).toEqual(['B', 'a.b', 'b']));
  it('meets its contract', () => expect(ToolCatalog.parse(catalog)).toEqual(catalog));
  it('has the hash of its sorted tools', () => expect(catalog.catalogHash).toBe(hashOf(catalog.tools)));
  it('has the same hash in another order and for another turn', () =>
    expect(publishToolCatalog('e-2', [tool('B'), tool('b'), tool('a.b')]).catalogHash).toBe(catalog.catalogHash));
  it('has the same hash whatever its tools require', () =>
    expect(publishToolCatalog('e-1', [tool('a', { requiredCapability: read(['x']) })]).catalogHash).toBe(
      publishToolCatalog('e-1', [tool('a')]).catalogHash,
    ));
  it('has another hash when a description changes', () =>
    expect(publishToolCatalog('e-1', [tool('a', { description: 'Other.' })]).catalogHash).not.toBe(
      publishToolCatalog('e-1', [tool('a')]).catalogHash,
    ));
  it('of nothing has the known hash', () =>
    expect(catalogHash([])).toBe('4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'));
  it('with one name twice is a broken registry', () => expect(() => publishToolCatalog('e-1', [tool('a'), tool('a')])).toThrow(Defect));
});

it('a portable name replaces every dot', () => expect(portableToolName('files.snapshot.create')).toBe('files_snapshot_create'));
