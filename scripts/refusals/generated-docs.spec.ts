import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REASON_CODES } from '../../test/conformance/runner/reason-codes.ts';
import { MUTANTS } from '../mutate/mutants.ts';
import { mutationsPage } from '../mutate/page.ts';
import { SECTIONS } from './codes.ts';
import { NO_TEST, refusalsPage } from './page.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');
const refusals = SECTIONS.flatMap((section) => section.refusals);
const codes = new Set(refusals.map(({ code }) => code));

/** A page without its last column, which names tests: they come and go, and are looked at one by one instead. */
const withoutTests = (page: string): string => page.replaceAll(/^(\| .*) \| [^|]* \|$/gm, '$1');
const rows = async (): Promise<readonly (readonly [code: string, test: string])[]> =>
  [...(await read('docs/refusals.md')).matchAll(/^\| `(\w+)` \|.* \| ([^|]*) \|$/gm)].map(([, code, test]) => [
    code as string,
    test as string,
  ]);

describe('docs/refusals.md', () => {
  it('says what is known of every code; `npm run docs` writes it anew', async () =>
    expect(withoutTests(await read('docs/refusals.md'))).toBe(withoutTests(refusalsPage(new Map()))));

  it('lists each code once', () => expect(codes.size).toBe(refusals.length));

  it('lists every code of the specification', () =>
    expect(
      Object.values(REASON_CODES)
        .flat()
        .filter((code) => !codes.has(code)),
    ).toEqual([]));

  it('lists every code that a service or a rule refuses with', async () => {
    const given = new Set<string>();
    for (const folder of ['libs', 'services']) {
      for (const entry of await readdir(join(root, folder), { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/(?<!\.spec|\.fixture)\.ts$/.test(entry.name) || /node_modules|testing/.test(entry.parentPath)) continue;
        const text = await readFile(join(entry.parentPath, entry.name), 'utf8');
        for (const [, code] of text.matchAll(/\b(?:refused\(|refuse\(\{ code: |err\(\{ code: )'([a-z]+(?:_[a-z]+)+)'/g))
          given.add(code as string);
      }
    }
    expect([...given].filter((code) => !codes.has(code))).toEqual([]);
    expect(given.size).toBeGreaterThan(20);
  });

  it('names a test for every code that can be produced', async () => {
    expect((await rows()).filter(([, test]) => test === NO_TEST).map(([code]) => code)).toEqual([]);
    expect(await rows()).toHaveLength(refusals.length);
  });

  it('names tests that are there and name the code', async () => {
    for (const [code, test] of await rows()) {
      const [file] = test.split(': ') as [string];
      expect(existsSync(join(root, file)), `${code}: ${file}`).toBe(true);
      expect(await read(file), `${code}: ${file}`).toContain(code);
    }
  });
});

describe('docs/mutations.md', () => {
  it('lists what `npm run mutate` breaks; `npm run docs` writes it anew', async () =>
    expect(await read('docs/mutations.md')).toBe(mutationsPage()));

  it('names, for each of at least forty, the one place where the rule stands', async () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(40);
    for (const { file, find, rule } of MUTANTS) expect((await read(file)).split(find), `${file}: ${rule}`).toHaveLength(2);
  });
});
