import { type AccessContext, type JsonObj, type ResourceOperation, RESULT_BYTES_MAX, type ToolCall } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { ZodError } from 'zod';
import { filesTools } from './files-tools.ts';
import { ContractError, ToolRegistry } from '@sharedos/kernel';
import type { ResourceProvider, ToolHandler } from '@sharedos/kernel';

const AT = '2026-01-01T12:00:00.000Z';
const context: AccessContext = {
  namespaceId: 'north',
  actor: { kind: 'agent', agentId: 'scout' },
  authority: { kind: 'human', userId: 'maren' },
  owner: { kind: 'human', userId: 'maren' },
  purpose: 'draft-brief',
  traceId: 'trace-1',
  enabledToolNamespaces: ['files'],
  now: AT,
};
const never = new AbortController().signal;

/** A provider that keeps what it was asked and answers `output`. */
const recording = (answer: (operation: ResourceOperation) => unknown): { provider: ResourceProvider; asked: ResourceOperation[] } => {
  const asked: ResourceOperation[] = [];
  return {
    asked,
    provider: {
      namespace: 'files',
      invoke: async (operation) => {
        asked.push(operation);
        return answer(operation) as never;
      },
    },
  };
};
const succeeded = (output: unknown) => (operation: ResourceOperation) => ({
  operationId: operation.operationId,
  completedAt: AT,
  status: 'succeeded',
  output,
});
const toolOf = (provider: ResourceProvider, name: string): ToolHandler => {
  const tool = filesTools(provider, () => Date.parse(AT)).find(({ definition }) => definition.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  return tool;
};
const callOf = (tool: ToolHandler, raw: JsonObj): ToolCall => ({
  id: 'call-1',
  tool: tool.definition.name,
  arguments: tool.parseArguments(raw) as JsonObj,
  traceId: 'trace-1',
  requestedAt: AT,
});
const silent = recording(succeeded(null)).provider;

describe('the files tools', () => {
  it('are the twelve of the table, each with its action as ceiling at the root and no owner', () => {
    const rows = filesTools(silent).map(({ definition: d }) => [
      d.name,
      d.requiredCapability,
      d.readWrite,
      d.annotations,
      d.namespace,
      d.source,
    ]);
    const ceiling = (action: string) => ({ resource: { namespace: 'files', path: [] }, action });
    expect(rows).toEqual([
      ['files.list', ceiling('list'), 'read', { readOnly: true }, 'files', 'sharedos'],
      ['files.stat', ceiling('stat'), 'read', { readOnly: true }, 'files', 'sharedos'],
      ['files.read', ceiling('read'), 'read', { readOnly: true }, 'files', 'sharedos'],
      ['files.search', ceiling('search'), 'read', { readOnly: true }, 'files', 'sharedos'],
      ['files.grep', ceiling('grep'), 'read', { readOnly: true }, 'files', 'sharedos'],
      ['files.create', ceiling('create'), 'write', undefined, 'files', 'sharedos'],
      ['files.replace', ceiling('replace'), 'write', { destructive: true }, 'files', 'sharedos'],
      ['files.append', ceiling('append'), 'write', undefined, 'files', 'sharedos'],
      ['files.delete', ceiling('delete'), 'write', { destructive: true }, 'files', 'sharedos'],
      ['files.snapshot.create', ceiling('snapshot:create'), 'write', undefined, 'files', 'sharedos'],
      ['files.snapshot.list', ceiling('snapshot:list'), 'read', { readOnly: true }, 'files', 'sharedos'],
      ['files.snapshot.restore', ceiling('snapshot:restore'), 'write', { destructive: true }, 'files', 'sharedos'],
    ]);
  });

  it('register, each with closed input and output schemas', () => {
    const registry = new ToolRegistry();
    for (const tool of filesTools(silent)) registry.register(tool);
    for (const { definition } of registry.handlers()) {
      expect(definition.inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(definition.outputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    }
    expect(registry.get('files.create')?.definition.inputSchema['required']).toEqual(expect.arrayContaining(['path', 'content']));
  });

  it('are refused over a provider of another namespace', () => {
    expect(() => filesTools({ ...silent, namespace: 'repo' })).toThrow(ContractError);
    expect(() => filesTools({ ...silent, namespace: 'Files' })).toThrow(ContractError);
  });

  it.each<[string, JsonObj]>([
    ['files.list', {}],
    ['files.list', { path: 'a/b' }],
    ['files.list', { path: ['..'] }],
    ['files.list', { path: [' a'] }],
    ['files.list', { path: ['a/b'] }],
    ['files.list', { path: Array.from({ length: 65 }, () => 'a') }],
    ['files.list', { path: [], recursive: true }],
    ['files.read', { path: ['a'], owner: { kind: 'human', userId: 'eve' } }],
    ['files.search', { path: [] }],
    ['files.search', { path: [], query: '   ' }],
    ['files.search', { path: [], query: 'x'.repeat(8193) }],
    ['files.search', { path: [], query: 'x', limit: 0 }],
    ['files.search', { path: [], query: 'x', limit: 101 }],
    ['files.search', { path: [], query: 'x', limit: 1.5 }],
    ['files.search', { path: [], query: 'x', limit: '5' }],
    ['files.create', { path: [], content: 'x' }],
    ['files.create', { path: ['a'] }],
    ['files.create', { path: ['a'], content: 'x', metadata: 'text' }],
    ['files.create', { path: ['a'], content: 'x', expectedVersion: 'v' }],
    ['files.grep', { path: [] }],
    ['files.grep', { path: [], pattern: '' }],
    ['files.grep', { path: [], pattern: 'x'.repeat(8193) }],
    ['files.grep', { path: [], pattern: 'x', mode: 'glob' }],
    ['files.grep', { path: [], pattern: 'x', contextBefore: 101 }],
    ['files.grep', { path: [], pattern: 'x', contextAfter: -1 }],
    ['files.grep', { path: [], pattern: 'x', limit: 5 }],
    ['files.replace', { path: [], content: 'x' }],
    ['files.replace', { path: ['a'] }],
    ['files.replace', { path: ['a'], content: 'x', metadata: {} }],
    ['files.delete', { path: [] }],
    ['files.delete', { path: ['a'], recursive: 'yes' }],
    ['files.snapshot.create', { path: [], label: ' ' }],
    ['files.snapshot.create', { path: [], label: 'x'.repeat(257) }],
    ['files.snapshot.list', { path: [], limit: 0 }],
    ['files.snapshot.restore', { path: [], snapshotId: 'x' }],
    ['files.snapshot.restore', { path: ['a'] }],
    ['files.snapshot.restore', { path: ['a'], snapshotId: ' ' }],
    ['files.append', { path: [], content: 'x' }],
    ['files.append', { path: ['a'], content: 'x', expectedVersion: '' }],
    ['files.append', { path: ['a'], content: 'x', expectedVersion: ' v' }],
    ['files.append', { path: ['a'], content: 'x', expectedVersion: 'v'.repeat(257) }],
    ['files.append', { path: ['a'], content: 'x', expectedVersion: null }],
  ])('%s refuses %j', (name, raw) => {
    expect(() => toolOf(silent, name).parseArguments(raw)).toThrow(ZodError);
  });

  it('take a version of 256 code points, however many code units', () => {
    const expectedVersion = '🙂'.repeat(256);
    expect(toolOf(silent, 'files.append').parseArguments({ path: ['a'], content: null, expectedVersion })).toMatchObject({
      expectedVersion,
    });
  });
});

describe('a call of a files tool', () => {
  it('needs its action on exactly its path, owned by the owner of the context', () => {
    const tool = toolOf(silent, 'files.search');
    expect(tool.resolveRequirement?.(context, callOf(tool, { path: ['notes', 'a'], query: 'x' }))).toEqual({
      resource: { namespace: 'files', path: ['notes', 'a'], owner: context.owner },
      action: 'search',
    });
  });

  it('hands the provider the normalised arguments, and the path only as the resource', async () => {
    const { provider, asked } = recording(succeeded({ matches: [], truncated: false }));
    const tool = toolOf(provider, 'files.search');
    await tool.invoke(context, callOf(tool, { path: ['notes'], query: '  hello ' }), never);
    expect(asked).toEqual([
      {
        operationId: 'call-1',
        context,
        resource: { namespace: 'files', path: ['notes'], owner: context.owner },
        action: 'search',
        input: { query: 'hello' },
      },
    ]);
  });

  it('gives no input at all when nothing but the path was said', async () => {
    const { provider, asked } = recording(succeeded({ entries: [], truncated: false }));
    const tool = toolOf(provider, 'files.list');
    await tool.invoke(context, callOf(tool, { path: [] }), never);
    expect(asked[0]).not.toHaveProperty('input');
  });

  it('keeps content that is null', async () => {
    const { provider, asked } = recording(succeeded({ size: 4, version: 'v1' }));
    const tool = toolOf(provider, 'files.create');
    await tool.invoke(context, callOf(tool, { path: ['a'], content: null }), never);
    expect(asked[0]?.input).toEqual({ content: null });
  });

  it('answers with the provider’s outcome under the call’s own id', async () => {
    const { provider } = recording(succeeded({ entries: [], truncated: false }));
    const tool = toolOf(provider, 'files.list');
    expect(await tool.invoke(context, callOf(tool, { path: [] }), never)).toEqual({
      callId: 'call-1',
      tool: 'files.list',
      status: 'succeeded',
      output: { entries: [], truncated: false },
      completedAt: AT,
    });
  });

  it.each(['denied', 'failed'])('passes on what the provider %s, with its error and metadata', async (status) => {
    const error = { code: 'file_not_found', message: 'there is no such file', retryable: false };
    const { provider } = recording(() => ({ operationId: 'call-1', completedAt: AT, status, error, metadata: { shelf: 3 } }));
    const tool = toolOf(provider, 'files.list');
    expect(await tool.invoke(context, callOf(tool, { path: [] }), never)).toEqual({
      callId: 'call-1',
      tool: 'files.list',
      status,
      error,
      completedAt: AT,
      metadata: { shelf: 3 },
    });
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['text', 'done'],
    ['another operation', { operationId: 'call-2', completedAt: AT, status: 'succeeded', output: { entries: [], truncated: false } }],
    ['no status', { operationId: 'call-1', completedAt: AT, output: {} }],
    ['success without output', { operationId: 'call-1', completedAt: AT, status: 'succeeded' }],
    ['failure without an error', { operationId: 'call-1', completedAt: AT, status: 'failed' }],
    [
      'an unknown key',
      { operationId: 'call-1', completedAt: AT, status: 'succeeded', output: { entries: [], truncated: false }, host: '/srv' },
    ],
    ['an output that is not JSON', { operationId: 'call-1', completedAt: AT, status: 'succeeded', output: { entries: new Map() } }],
    ['an output other than the published one', { operationId: 'call-1', completedAt: AT, status: 'succeeded', output: { files: [] } }],
    ['a time that is none', { operationId: 'call-1', completedAt: 'now', status: 'succeeded', output: { entries: [], truncated: false } }],
  ])('fails with invalid_resource_result when the provider answers %s', async (_title, answer) => {
    const { provider } = recording(() => answer);
    const tool = toolOf(provider, 'files.list');
    expect(await tool.invoke(context, callOf(tool, { path: [] }), never)).toMatchObject({
      callId: 'call-1',
      tool: 'files.list',
      status: 'failed',
      error: { code: 'invalid_resource_result', retryable: false },
    });
  });

  it('fails with invalid_tool_result when the JSON of the result is too large, and not one byte earlier', async () => {
    const sized = async (length: number) => {
      const { provider } = recording(succeeded({ content: 'x'.repeat(length), encoding: 'utf8', size: length, version: 'v1' }));
      const tool = toolOf(provider, 'files.read');
      return tool.invoke(context, callOf(tool, { path: ['a'] }), never);
    };
    // A length with as many digits as the one tried, so that what surrounds the content stays the same.
    const around = Buffer.byteLength(JSON.stringify(await sized(1_000_000))) - 1_000_000;
    const largest = await sized(RESULT_BYTES_MAX - around);
    expect(largest.status).toBe('succeeded');
    expect(Buffer.byteLength(JSON.stringify(largest))).toBe(RESULT_BYTES_MAX);
    expect(await sized(RESULT_BYTES_MAX - around + 1)).toMatchObject({ status: 'failed', error: { code: 'invalid_tool_result' } });
  });

  it('lets a throw of the provider go to the kernel, which has the code for it', async () => {
    const tool = toolOf({ namespace: 'files', invoke: () => Promise.reject(new Error('disk on fire')) }, 'files.list');
    await expect(tool.invoke(context, callOf(tool, { path: [] }), never)).rejects.toThrow('disk on fire');
  });
});
