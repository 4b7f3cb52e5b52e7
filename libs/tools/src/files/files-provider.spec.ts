import { ContractError } from '@sharedos/kernel';
import { isFileName } from './file-name.ts';
import { type FilesProviderOptions, filesProvider } from './files-provider.ts';
import { FILES_PLANE } from './files-tools.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FilesWorld, codeOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

describe('opening a files provider', () => {
  it.each<[string, Partial<FilesProviderOptions>]>([
    ['a relative root', { root: 'files' }],
    ['a read limit of nothing', { maxReadBytes: 0 }],
    ['a read limit whose answer would not fit a result', { maxReadBytes: 4 * 1024 * 1024 }],
    ['a limit that is not a number', { maxFileBytes: Number.NaN }],
    ['a listing longer than its schema', { maxListEntries: 1_001 }],
    ['a search without files', { search: { filesMax: 0 } }],
  ])('is refused with %s', (_title, options) => {
    expect(() => filesProvider({ root: world.root, ...options })).toThrow(ContractError);
  });

  it('knows as many actions as the plane has tools', async () => {
    const { provide } = world.open();
    for (const { action } of Object.values(FILES_PLANE.rows)) expect(codeOf(await provide(action, []))).not.toBe('action_not_supported');
  });
});

describe('a name on Windows', () => {
  it.each(['C:', 'a:stream', 'CON', 'nul.txt', 'com1', 'a.', 'PROGRA~1', '*', '>', '"', '|'])(
    '%j is refused, because it would be another',
    (name) => expect(isFileName(name, 'win32')).toBe(false),
  );
  it.each(['a.txt', 'console', 'é', '🙂', '..a'])('%j is itself', (name) => expect(isFileName(name, 'win32')).toBe(true));
});
