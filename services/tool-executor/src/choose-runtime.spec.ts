import { unavailable } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { executorRuntimes, runtimeOf } from './choose-runtime.ts';
import { type RuntimeSettings, modelProvider, runtimeSettings } from './runtime-settings.ts';

const settings = (env: Readonly<Record<string, string>> = {}): RuntimeSettings => z.object(runtimeSettings).parse(env);
const MODEL = {
  SHAREDOS_MODEL_WIRE: 'messages',
  SHAREDOS_MODEL_BASE_URL: 'http://127.0.0.1:9',
  SHAREDOS_MODEL_NAME: 'model-1',
  SHAREDOS_MODEL_API_KEY: 'a-key',
};
const runtimes = (env: Readonly<Record<string, string>> = MODEL) =>
  executorRuntimes(settings(env), {
    bus: { request: async () => unavailable('nobody') },
    clock: () => 0,
    onTurnError: () => undefined,
  });
const idOf = (runtime: string, config = {}): string => runtimes().resolve(runtime, config).manifest.id;

describe('the runtime of an agent', () => {
  it.each([
    ['scripted', 'sharedos.standard'],
    ['remote', 'sharedos.remote'],
    ['model', 'sharedos.model.messages'],
  ])('is, when its registration says %s, %s', (name, id) => expect(idOf(name)).toBe(id));

  it('is a harness that the operator stated, by the name given there', () => {
    const stated = { SHAREDOS_HARNESSES: JSON.stringify({ 'our-codex': { vendor: 'codex', command: '/usr/bin/codex' } }) };
    expect(runtimes(stated).resolve('our-codex', { model: 'm' }).manifest.id).toBe('sharedos.codex.mcp');
    expect(() => runtimes(stated).resolve('our-codex', { command: '/bin/sh' })).toThrow();
    expect(() => runtimes({}).resolve('our-codex')).toThrow('none of that name');
    expect(() => runtimes({ SHAREDOS_HARNESSES: '{"x":{"vendor":"codex"}}' })).toThrow();
  });

  it('is the executor’s own when its registration says nothing', () => {
    const own = runtimes().resolve('remote');
    expect(runtimeOf(runtimes(), own, undefined)).toBe(own);
    expect(runtimeOf(runtimes(), own, { runtime: 'model', config: {} }).manifest.id).toBe('sharedos.model.messages');
  });

  it('is never another than it says: a name that is not there is a mistake of the host', () => {
    const own = runtimes().resolve('scripted');
    for (const runtime of ['nobody', 'Model', 'constructor', '__proto__']) {
      expect(() => runtimeOf(runtimes(), own, { runtime, config: {} })).toThrow('none of that name');
    }
    expect(() => runtimeOf(runtimes({}), own, { runtime: 'model', config: {} })).toThrow('none of that name');
  });

  it('may be told which model, and how to ask it', () => {
    const { manifest } = runtimes().resolve('model', { model: 'model-2', guidance: 'Be brief.', temperature: 0.2, maxOutputTokens: 100 });
    expect(manifest.metadata).toEqual({ driver: 'model', model: 'model-2', provider: 'anthropic' });
  });

  it.each([
    ['where to send the key', 'model', { baseUrl: 'http://elsewhere' }],
    ['another key', 'model', { apiKey: 'k' }],
    ['headers', 'model', { headers: { 'x-a': 'b' } }],
    ['another way to speak', 'model', { wire: 'responses' }],
    ['a time-out that outlasts a turn', 'remote', { stepTimeoutMs: 600_001 }],
    ['where the agent is', 'remote', { subject: 'sharedos.v1.other' }],
    ['anything', 'scripted', { fast: true }],
  ])('is not told %s', (_what, name, config) => expect(() => runtimes().resolve(name, config)).toThrow());
});

describe('the provider of models', () => {
  it('is none where nothing is said of it', () => expect(modelProvider(settings())).toBeUndefined());
  it('is paid with a key, or with the token in a file', () => {
    expect(modelProvider(settings(MODEL))).toMatchObject({ apiKey: 'a-key' });
    const { SHAREDOS_MODEL_API_KEY: _, ...rest } = MODEL;
    expect(modelProvider(settings({ ...rest, SHAREDOS_MODEL_TOKEN_FILE: '/run/token' }))).toMatchObject({ tokenPath: '/run/token' });
  });
  it.each<[string, Readonly<Record<string, string>>]>([
    ['a key alone', { SHAREDOS_MODEL_API_KEY: 'a-key' }],
    ['no key', { ...MODEL, SHAREDOS_MODEL_API_KEY: undefined as never }],
    ['a key and a token', { ...MODEL, SHAREDOS_MODEL_TOKEN_FILE: '/run/token' }],
    ['no model', { ...MODEL, SHAREDOS_MODEL_NAME: undefined as never }],
  ])('does not start with %s, and does not say the key', (_what, env) => {
    expect(() => modelProvider(settings(env))).toThrow(/a model needs/);
    expect(() => modelProvider(settings(env))).not.toThrow(/a-key/);
  });
});
