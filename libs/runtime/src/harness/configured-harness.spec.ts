import { describe, expect, it } from 'vitest';
import { type HarnessSettings, openHarness, readHarnesses } from './configured-harness.ts';

const CODEX = { vendor: 'codex', command: '/usr/bin/codex', env: { CODEX_API_KEY: 'k' } } as const;
const read = (stated: unknown) => readHarnesses(JSON.stringify(stated));
const opened = (settings: HarnessSettings, config = {}) => openHarness(settings, { clock: () => 0 })(config).manifest.id;

describe('the harnesses of a host', () => {
  it('are stated by name, each with its program and its whole environment', () =>
    expect(read({ codex: CODEX, 'claude-2': { vendor: 'claude-code', command: 'claude', args: ['--debug'], model: 'opus' } })).toEqual({
      ok: true,
      value: { codex: CODEX, 'claude-2': { vendor: 'claude-code', command: 'claude', args: ['--debug'], env: {}, model: 'opus' } },
    }));

  it.each<[string, unknown]>([
    ['an unknown vendor', { x: { ...CODEX, vendor: 'copilot' } }],
    ['no program', { x: { vendor: 'codex' } }],
    ['an unknown setting', { x: { ...CODEX, shell: true } }],
    ['Pi without the extension that brings its MCP client', { x: { vendor: 'pi', command: 'pi' } }],
    ['a name that no registration could say', { 'Codex!': CODEX }],
    ['a list', [CODEX]],
  ])('are refused with %s', (_, stated) => expect(read(stated).ok).toBe(false));

  it('are refused when they are no JSON, or say one name twice', () => {
    expect(readHarnesses('codex').ok).toBe(false);
    expect(readHarnesses(`{"a":${JSON.stringify(CODEX)},"a":${JSON.stringify(CODEX)}}`).ok).toBe(false);
  });

  it.each<[string, HarnessSettings]>([
    ['sharedos.codex.mcp', CODEX],
    ['sharedos.claude-code.mcp', { ...CODEX, vendor: 'claude-code' }],
    ['sharedos.deepseek.mcp', { ...CODEX, vendor: 'deepseek' }],
    ['sharedos.pi.mcp', { ...CODEX, vendor: 'pi', extension: '/opt/mcp.js' }],
  ])('open as %s', (id, settings) => expect(opened(settings)).toBe(id));

  it('may be told by a registration which model, and nothing of what is started', () => {
    expect(opened(CODEX, { model: 'a', modelProvider: 'b' })).toBe('sharedos.codex.mcp');
    for (const config of [{ command: '/bin/sh' }, { args: ['-c'] }, { env: { A: 'b' } }, { vendor: 'pi' }, { model: '' }])
      expect(() => opened(CODEX, config)).toThrow();
  });
});
