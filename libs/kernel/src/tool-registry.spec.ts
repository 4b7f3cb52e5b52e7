import { describe, expect, it } from 'vitest';
import { ContractError, DuplicateRegistrationError } from './contract-errors.ts';
import type { ToolHandler } from './tool-handler.ts';
import { ToolRegistry } from './tool-registry.ts';

const handler = (name: string): ToolHandler => ({
  definition: {
    name,
    description: 'Says hello.',
    namespace: 'greetings',
    source: 'native',
    readWrite: 'read',
    inputSchema: { type: 'object', properties: { to: { type: 'string' } } },
    requiredCapability: { resource: { namespace: 'greetings', path: [] }, action: 'greet' },
    annotations: { readOnly: true },
  },
  parseArguments: (raw) => raw,
  invoke: async (_context, call) => ({
    callId: call.id,
    tool: call.tool,
    status: 'succeeded',
    output: 'hello',
    completedAt: call.requestedAt,
  }),
});

const changed = (change: object): ToolHandler => {
  const base = handler('greet.one');
  return { ...base, definition: { ...base.definition, ...change } };
};

describe('registering a tool', () => {
  it('makes it found by its exact name only', () => {
    const registry = new ToolRegistry();
    registry.register(handler('greet.one'));
    expect(registry.get('greet.one')?.definition.name).toBe('greet.one');
    expect(registry.get('Greet.one')).toBeUndefined();
    expect(registry.get('greet_one')).toBeUndefined();
    expect(registry.get('__proto__')).toBeUndefined();
  });

  it('lists by name in code-unit order, whatever the order of registration', () => {
    const registry = new ToolRegistry();
    for (const name of ['b', 'a_b', 'a', 'a-b', 'B', 'a.b']) registry.register(handler(name));
    expect(registry.handlers().map((tool) => tool.definition.name)).toEqual(['B', 'a', 'a-b', 'a.b', 'a_b', 'b']);
    registry.register(handler('A'));
    expect(registry.handlers()[0]?.definition.name).toBe('A');
  });

  it.each([
    ['an empty name', { name: '' }],
    ['a name with a space', { name: 'greet one' }],
    ['a name that is too long', { name: 'x'.repeat(129) }],
    ['no description', { description: '' }],
    ['an unknown key', { colour: 'red' }],
    ['a class that is neither read nor write', { readWrite: 'both' }],
    ['a read tool that is destructive', { annotations: { destructive: true } }],
    ['a write tool that is read-only', { readWrite: 'write' }],
    ['a schema that is not JSON', { inputSchema: { type: () => 'object' } }],
    [
      'a requirement with a traversal segment',
      { requiredCapability: { resource: { namespace: 'greetings', path: ['..'] }, action: 'greet' } },
    ],
  ])('is refused for %s', (_title, change) => {
    const registry = new ToolRegistry();
    expect(() => registry.register(changed(change))).toThrow(ContractError);
    expect(registry.handlers()).toEqual([]);
  });

  it('is refused without a parser or an effect', () => {
    const registry = new ToolRegistry();
    for (const missing of ['parseArguments', 'invoke']) {
      expect(() => registry.register({ ...handler('greet.one'), [missing]: undefined } as unknown as ToolHandler)).toThrow(ContractError);
    }
    expect(() => registry.register({ ...handler('greet.one'), resolveRequirement: 'greet' } as unknown as ToolHandler)).toThrow(
      ContractError,
    );
  });

  it('is refused the second time, and the first stays', () => {
    const registry = new ToolRegistry();
    registry.register(handler('greet.one'));
    const first = registry.get('greet.one');
    let refusal: unknown;
    try {
      registry.register(changed({ description: 'Another.' }));
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(DuplicateRegistrationError);
    expect(refusal).toMatchObject({ kind: 'tool', identifier: 'greet.one' });
    expect(registry.get('greet.one')).toBe(first);
  });

  it('keeps a copy that later changes of the host do not reach', () => {
    const registry = new ToolRegistry();
    const given = handler('greet.one') as { definition: ToolHandler['definition']; invoke: ToolHandler['invoke'] } & ToolHandler;
    registry.register(given);
    (given.definition.requiredCapability.resource.path as string[]).push('elsewhere');
    (given.definition.inputSchema as Record<string, unknown>)['type'] = 'array';
    given.invoke = () => Promise.reject(new Error('swapped'));
    const kept = registry.get('greet.one') as ToolHandler;
    expect(kept.definition.requiredCapability.resource.path).toEqual([]);
    expect(kept.definition.inputSchema['type']).toBe('object');
    const call = { id: 'call-1', tool: 'greet.one', arguments: {}, traceId: 'trace-1', requestedAt: '2026-01-01T12:00:00.000Z' };
    return expect(kept.invoke({} as never, call, AbortSignal.abort())).resolves.toMatchObject({ status: 'succeeded' });
  });

  it('keeps a definition that nobody can change, at any depth', () => {
    const registry = new ToolRegistry();
    registry.register(handler('greet.one'));
    const { definition } = registry.get('greet.one') as ToolHandler;
    expect(() => Object.assign(definition.requiredCapability.resource, { namespace: 'other' })).toThrow(TypeError);
    expect(() => Object.assign(definition.inputSchema['properties'] as object, { more: 1 })).toThrow(TypeError);
    expect(() => Object.assign(registry.get('greet.one') as object, { invoke: undefined })).toThrow(TypeError);
    expect(() => (registry.handlers() as ToolHandler[]).pop()).toThrow(TypeError);
  });

  it('keeps `this` of a handler that is an object with state', async () => {
    class Counter implements ToolHandler {
      readonly definition = handler('greet.count').definition;
      #calls = 0;
      parseArguments: ToolHandler['parseArguments'] = (raw) => raw;
      async invoke(...[, call]: Parameters<ToolHandler['invoke']>): ReturnType<ToolHandler['invoke']> {
        this.#calls += 1;
        return { callId: call.id, tool: call.tool, status: 'succeeded', output: this.#calls, completedAt: call.requestedAt };
      }
    }
    const registry = new ToolRegistry();
    registry.register(new Counter());
    const call = { id: 'call-1', tool: 'greet.count', arguments: {}, traceId: 't', requestedAt: '2026-01-01T12:00:00.000Z' };
    expect(await registry.get('greet.count')?.invoke({} as never, call, new AbortController().signal)).toMatchObject({ output: 1 });
  });

  it('takes what another registry holds as it is: it was parsed and can never change', () => {
    const [first, second] = [new ToolRegistry(), new ToolRegistry()];
    first.register(handler('greet.one'));
    for (const entry of first.handlers()) second.register(entry);
    expect(second.get('greet.one')).toBe(first.get('greet.one'));
  });

  it('in a copy leaves the original as it was, and a colliding name is still refused', () => {
    const registry = new ToolRegistry();
    registry.register(handler('greet.one'));
    const copy = registry.copy();
    copy.register(handler('greet.two'));
    expect(registry.handlers()).toHaveLength(1);
    expect(copy.handlers()).toHaveLength(2);
    expect(() => copy.register(handler('greet.one'))).toThrow(DuplicateRegistrationError);
  });
});
