import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { McpPlace } from '@sharedos/contracts';
import { ContractError } from '@sharedos/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_SERVERS, isAllowed, isSecretOf, readOperatorList } from './operator-list.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'operator-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const listOf = (given: unknown) => {
  const file = join(folder, 'mcp.json');
  writeFileSync(file, typeof given === 'string' ? given : JSON.stringify(given));
  return readOperatorList(file);
};
const at = (url: string): McpPlace => ({ kind: 'http', url });

describe('the list of the operator', () => {
  it('says which processes and which hosts owners may have', async () => {
    const list = await listOf({
      processes: { memory: { command: 'node', args: ['memory.js'] } },
      hosts: ['https://crm.example', 'http://127.0.0.1:3001'],
    });
    expect(isAllowed(list, { kind: 'process', process: 'memory' })).toBe(true);
    expect(isAllowed(list, at('https://crm.example/mcp?x=1'))).toBe(true);
    expect(isAllowed(list, at('http://127.0.0.1:3001/'))).toBe(true);
  });

  it.each([
    'https://crm.example:8443/mcp',
    'http://crm.example/mcp',
    'https://crm.example.evil.example/mcp',
    'https://alice:password@crm.example/mcp',
    'https://crm.example@evil.example/mcp',
    'http://127.0.0.1:3002/',
    'http://[::1]:3001/',
    'file:///etc/passwd',
    'no URL',
  ])('does not allow %s by allowing something like it', async (url) =>
    expect(isAllowed(await listOf({ hosts: ['https://crm.example', 'http://127.0.0.1:3001'] }), at(url))).toBe(false),
  );

  it('allows nothing where there is none', () => {
    expect(isAllowed(NO_SERVERS, { kind: 'process', process: 'sh' })).toBe(false);
    expect(isAllowed(NO_SERVERS, { kind: 'process', process: 'constructor' })).toBe(false);
    expect(isAllowed(NO_SERVERS, at('https://crm.example'))).toBe(false);
  });

  it.each<[string, unknown]>([
    ['no JSON', '{'],
    ['an unknown member', { programs: {} }],
    ['a name that no server can have', { processes: { 'My Server': { command: 'x' } } }],
    ['no command', { processes: { memory: { args: [] } } }],
    ['a host with a path', { hosts: ['https://crm.example/mcp'] }],
    ['a host that anybody on the way could read', { hosts: ['http://crm.example'] }],
  ])('ends the start with %s', (_, given) => expect(listOf(given)).rejects.toThrow(ContractError));

  it('ends the start where it cannot be read', () => expect(readOperatorList(join(folder, 'none.json'))).rejects.toThrow('cannot be read'));

  it('says which variables owners may set; headers are theirs but for those of the protocol', async () => {
    const list = await listOf({ processes: { memory: { command: 'node', secrets: ['API_KEY'] } } });
    const [process, http] = [{ kind: 'process', process: 'memory' } as const, at('https://crm.example')];
    expect(['API_KEY', 'NODE_OPTIONS', 'LD_PRELOAD', 'PATH'].filter((name) => isSecretOf(list, process, name))).toEqual(['API_KEY']);
    const names = ['authorization', 'X-Api-Key', 'host', 'Content-Length', 'mcp-session-id', 'cookie', 'a_b'];
    expect(names.filter((name) => isSecretOf(list, http, name))).toEqual(['authorization', 'X-Api-Key']);
  });
});
