import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as kernel from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { CORE_API } from './core-api.ts';
import { coverage } from './page.ts';

const root = join(import.meta.dirname, '..', '..');
const text = join(root, '../shared/seeds/core-api-0.1.0-alpha.5.txt');
const covered = await coverage();
const exported: Readonly<Record<string, unknown>> = kernel;

describe('the core API', () => {
  it.each(covered.map((name) => [name.kind, name.name, name] as const))(
    'has its %s %s here, and a test that shows it',
    (_kind, _name, name) => {
      expect(name.declaredIn).toBeDefined();
      expect(name.shownBy).not.toEqual([]);
    },
  );

  it.each(CORE_API.filter(({ kind }) => kind === 'class'))('class $name has the members its users call', ({ name, members = [] }) => {
    const { prototype } = exported[name] as { readonly prototype: object };
    expect(members.filter((member) => !(member in prototype))).toEqual([]);
  });

  it.each(CORE_API.filter(({ kind }) => kind === 'function'))('function $name is one', ({ name }) =>
    expect(exported[name]).toBeTypeOf('function'),
  );
  it.each(CORE_API.filter(({ kind }) => kind === 'constant'))('constant $name is there', ({ name }) =>
    expect(exported[name]).toBeDefined(),
  );

  // Held row by row and not as one text: a further test somewhere is no reason for the page to be wrong.
  const rows = readFileSync(join(root, 'docs/api-coverage.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => ({
      name: /^\| `([^`]+)`/.exec(line)?.[1],
      linked: [...line.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, path]) => path),
    }));
  it('is the page docs/api-coverage.md, name by name', () =>
    expect(
      rows.map(({ name }) => name),
      'npm run docs',
    ).toEqual(CORE_API.map(({ name }) => name)));
  it.each(covered.map((name, index) => [name.name, name, rows[index]?.linked ?? []] as const))(
    'has on that page where %s is, and tests that still show it',
    (_, { declaredIn, shownBy }, [where, ...tests]) => {
      expect(where, 'npm run docs').toBe(declaredIn);
      expect(tests.length).toBeGreaterThan(0);
      for (const test of tests) expect(shownBy, 'npm run docs').toContain(test);
    },
  );

  it.runIf(existsSync(text))('is the whole of the API text, line by line', () => {
    const lines = readFileSync(text, 'utf8').split('\n');
    const start = lines.indexOf('Classes');
    const names = lines
      .slice(start)
      .flatMap((line, index, rest) =>
        /^(?:Classes|Interfaces|Type Aliases|Variables|Functions)$/.test(line) || line.endsWith('---') ? [rest[index + 1] ?? ''] : [],
      )
      .map((name) => name.replace(/\(\)|<.*/g, '').trim())
      .filter((name) => name !== '');
    expect(CORE_API.map(({ name }) => name)).toEqual(names);
  });
});
