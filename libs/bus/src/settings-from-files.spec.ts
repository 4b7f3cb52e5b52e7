import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { withFiles } from './settings-from-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'sharedos-settings-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'secret');
writeFileSync(file, 'from the file\n');
const refuse = (line: string): never => {
  throw new Error(line);
};
const read = (env: Record<string, string>): Readonly<Record<string, string | undefined>> => withFiles(env, ['SECRET', 'CA_FILE'], refuse);

describe('a setting', () => {
  it('is read from the file that a variable names, without the end of its line', () =>
    expect(read({ SECRET_FILE: file })['SECRET']).toBe('from the file'));
  it('is the variable itself where there is one', () => expect(read({ SECRET: 'here' })['SECRET']).toBe('here'));
  it('is refused when it is said twice', () => expect(() => read({ SECRET: 'here', SECRET_FILE: file })).toThrow(/both set/));
  it('is refused when its file is not there, and the line does not show where it was looked for', () =>
    expect(() => read({ SECRET_FILE: join(folder, 'none') })).toThrow(/^SECRET_FILE names a file that cannot be read$/));
  it('that is the name of a file itself stays one', () => expect(read({ CA_FILE: file })).toEqual({ CA_FILE: file }));
  it('that is not ours is left alone', () => expect(read({ OTHER_FILE: file })).toEqual({ OTHER_FILE: file }));
});
