import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

const filesUnder = async (folder: string, ending: string): Promise<readonly string[]> => {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending) && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name));
};
const relative = (file: string): string => file.slice(root.length + 1);

describe('the documentation', async () => {
  const pages = [
    join(root, 'README.md'),
    ...(await Promise.all(['docs', 'schemas', 'deploy', 'services', 'test'].map((folder) => filesUnder(folder, '.md')))).flat(),
  ];

  it.each(pages.map(relative))('%s links to nothing that is not there', async (page) => {
    const text = await readFile(join(root, page), 'utf8');
    for (const [, target] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g))
      expect(existsSync(join(root, dirname(page), target as string)), target).toBe(true);
  });

  it('has every decision that the sources refer to', async () => {
    const sources = (await Promise.all(['libs', 'services', 'test', 'deploy'].map((folder) => filesUnder(folder, '.ts')))).flat();
    for (const file of sources) {
      for (const [reference] of (await readFile(file, 'utf8')).matchAll(/docs\/adr\/\d{4}-[a-z0-9-]+\.md/g))
        expect(existsSync(join(root, reference)), `${relative(file)}: ${reference}`).toBe(true);
    }
  });

  it('shows in the README the commands that package.json has', async () => {
    const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
    const readme = await readFile(join(root, 'README.md'), 'utf8');
    const named = [...readme.matchAll(/npm (?:run )?(?!ci\b|install\b)([a-z]+(?::[a-z]+)?)\b/g)].map(([, name]) => name as string);
    expect([...new Set(named)].toSorted()).toEqual(Object.keys(scripts).toSorted());
    expect(await readFile(join(root, '.ci/run'), 'utf8')).toMatch(/^exec npm test$/m);
  });
});
