import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { generatedFiles } from './schemas/generated-files.ts';

const folder = join(import.meta.dirname, '..', 'schemas');

const existing = async (): Promise<readonly string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name !== 'README.md')
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'));

const wanted = generatedFiles();
const stale = (await existing()).filter((path) => !wanted.has(path));
const different: string[] = [];
for (const [path, text] of wanted) {
  if ((await readFile(join(folder, path), 'utf8').catch(() => undefined)) !== text) different.push(path);
}

if (process.argv.includes('--check')) {
  for (const path of [...different, ...stale]) process.stderr.write(`schemas/${path} is not what libs/contracts says\n`);
  process.exitCode = different.length + stale.length === 0 ? 0 : 1;
} else {
  for (const path of stale) await rm(join(folder, path));
  for (const path of different) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), wanted.get(path) as string);
  }
  process.stdout.write(`schemas: ${wanted.size} files, ${different.length} written, ${stale.length} removed\n`);
}
