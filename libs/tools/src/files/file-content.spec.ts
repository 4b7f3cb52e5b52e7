import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textOf, withBytes } from './file-content.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'file-content-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('reading the bytes of files', () => {
  const contents = ['a', 'bb', 'c'.repeat(300_000), 'd'.repeat(1024 * 1024), 'e'.repeat(1024 * 1024 + 1)];
  const read = async (text: string, index: number): Promise<string> => {
    const file = join(folder, `file-${index}`);
    writeFileSync(file, text);
    const handle = await open(file);
    try {
      return await withBytes(handle, Buffer.byteLength(text), (bytes) => bytes.toString('utf8'));
    } finally {
      await handle.close();
    }
  };

  it('gives each of many at once its own, and nothing of the one before it', async () => {
    const many = Array.from({ length: 4 }, () => contents).flat();
    expect(await Promise.all(many.map(read))).toEqual(many);
    for (const [index, text] of contents.toReversed().entries()) expect(await read(text, index)).toBe(text);
  });

  it('goes on after what is made of the bytes throws', async () => {
    const file = join(folder, 'throws');
    writeFileSync(file, 'x');
    const handle = await open(file);
    const fails = withBytes(handle, 1, () => {
      throw new Error('no');
    });
    await expect(fails).rejects.toThrow('no');
    expect(await withBytes(handle, 1, (bytes) => bytes.toString())).toBe('x');
    await handle.close();
  });
});

describe('the text of bytes', () => {
  it.each([0, 1, 2, 3])('is whole where a character lies over the end of a part (%i)', (shift) => {
    const text = 'x'.repeat(shift) + '🙂é'.repeat(200_000);
    expect(textOf(Buffer.from(text))).toBe(text);
  });
  it('is none where the bytes are no UTF-8, or hold a NUL', () => {
    const bytes = Buffer.alloc(1_200_000, 'a');
    expect(textOf(bytes)).toBe('a'.repeat(1_200_000));
    bytes[700_000] = 0xff;
    expect(textOf(bytes)).toBeUndefined();
    bytes[700_000] = 0;
    expect(textOf(bytes)).toBeUndefined();
  });
});
