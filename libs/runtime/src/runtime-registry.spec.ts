import { describe, expect, it } from 'vitest';
import { ContractError } from './errors.ts';
import type { Runtime } from './runtime.ts';
import { RuntimeRegistry } from './runtime-registry.ts';
import { aRequest, aWorld, runtimeOf } from './testing/index.ts';

const named = (id: string): Runtime => ({
  ...runtimeOf(async () => ({ type: 'complete', output: id })),
  manifest: { id, version: '1', protocolVersion: '1' },
});

describe('the runtimes of a host', () => {
  it('are opened by name, with what the registration of the agent says', () => {
    const registry = new RuntimeRegistry();
    registry.register('a', (config) => named(String(config['id'] ?? 'a')));
    expect(registry.resolve('a').manifest.id).toBe('a');
    expect(registry.resolve('a', { id: 'b' }).manifest.id).toBe('b');
    expect(Object.isFrozen(registry.resolve('a').manifest)).toBe(true);
  });
  it('have one name each', () => {
    const registry = new RuntimeRegistry();
    registry.register('a', () => named('a'));
    expect(() => registry.register('a', () => named('b'))).toThrow(ContractError);
  });
  it.each<[string, unknown]>([
    ['has no manifest', { run: async () => undefined }],
    ['has a manifest of another protocol', { ...named('a'), manifest: { id: 'a', version: '1', protocolVersion: '9' } }],
    ['does not run', { manifest: named('a').manifest }],
  ])('are none of what %s, which is seen at once', (_what, runtime) => {
    const registry = new RuntimeRegistry();
    expect(() => registry.register('a', () => runtime as Runtime)).toThrow(ContractError);
    expect(() => registry.resolve('a')).toThrow(ContractError);
  });
});

describe('a turn whose agent has a runtime of its own', () => {
  const own = named('own');
  const other = () => aWorld({ runtime: own });

  it('runs in it, and its result says so', async () => {
    const { run, heard } = other();
    const result = await run(aRequest(), { chooseRuntime: () => named('theirs') });
    expect(result).toMatchObject({ status: 'succeeded', output: 'theirs', metadata: { runtime: { id: 'theirs' } } });
    expect(heard[0]).toMatchObject({ type: 'turn.started', data: { runtime: { id: 'theirs' } } });
    expect(await run(aRequest())).toMatchObject({ output: 'own', metadata: { runtime: { id: 'own' } } });
  });
  it('asks for it once, when it is admitted', async () => {
    const { run, kernel } = other();
    let chosenAfter: readonly string[] = [];
    await run(aRequest(), {
      chooseRuntime: () => {
        chosenAfter = [...kernel.asked];
        return named('theirs');
      },
    });
    expect(chosenAfter).toEqual(['open', 'admit']);
  });
  it('fails by the envelope when this host has none of that name, and the host alone hears why', async () => {
    const { run, errors, kernel } = other();
    const result = await run(aRequest(), { chooseRuntime: () => new RuntimeRegistry().resolve('nobody') });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'runtime_failed' } });
    expect(kernel.ends[0]).toMatchObject({ endedBy: 'envelope' });
    expect(errors[0]).toBeInstanceOf(ContractError);
    expect(JSON.stringify(result)).not.toContain('none of that name');
  });
});
