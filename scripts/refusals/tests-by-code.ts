import { readFile, readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** A test that names a code, by where it is and what it says. */
export interface NamingTest {
  readonly file: string;
  readonly title: string;
}

interface Source {
  readonly file: string;
  readonly text: string;
}

/** Nearest to the rule first: what a reader wants to see of a code is the rule that gives it, not the longest way to it. */
const FOLDERS = ['libs/kernel', 'libs/runtime', 'libs/tools', 'services', 'libs', 'test'];
const nearness = (file: string): number => FOLDERS.findIndex((folder) => file.startsWith(`${folder}/`));

/** Finds, for each code, the first test that names it as a literal: a spec, or a case that both kernel and services run. */
export const testsByCode = async (codes: readonly string[]): Promise<ReadonlyMap<string, NamingTest>> => {
  const [specs, cases] = [await sourcesOf('.spec.ts', ['libs', 'services', 'test']), await sourcesOf('.json', ['test/conformance'])];
  const found = new Map<string, NamingTest>();
  for (const code of codes) {
    const test = firstOf(specs, (text) => titleAt(text, code)) ?? firstOf(cases, (text) => caseNaming(text, code));
    if (test !== undefined) found.set(code, test);
  }
  return found;
};

const firstOf = (sources: readonly Source[], titleIn: (text: string) => string | undefined): NamingTest | undefined => {
  for (const { file, text } of sources) {
    const title = titleIn(text);
    if (title !== undefined) return { file, title };
  }
  return undefined;
};

const sourcesOf = async (ending: string, folders: readonly string[]): Promise<readonly Source[]> => {
  const files: string[] = [];
  for (const folder of folders) {
    for (const entry of await readdir(join(root, folder), { recursive: true, withFileTypes: true }))
      if (entry.isFile() && entry.name.endsWith(ending) && !entry.parentPath.includes('node_modules'))
        files.push(relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'));
  }
  const inOrder = files.toSorted((a, b) => nearness(a) - nearness(b) || (a < b ? -1 : 1));
  return Promise.all(inOrder.map(async (file) => ({ file, text: await readFile(join(root, file), 'utf8') })));
};

/** A title, or a title's beginning where it goes on with what differs from row to row. */
const TITLE = /\b(?:it|describe)(?:\.each(?:<[^>]*>)?)?\([^'"`]*?(['"`])((?:(?!\1)[^\\]|\\.)+)\1/g;

/** The title nearest above the first place where a test names the code in a quoted text; a word that means more only as a whole one. */
const titleAt = (text: string, code: string): string | undefined => {
  const around = code.includes('_') ? '[^\'"`\\n]*' : '';
  const lead = code.includes('_') ? '' : '(?:reason|reasonCode|code): ';
  const named = new RegExp(`${lead}['"\`]${around}\\b${code}\\b${around}['"\`]`, 'g');
  for (const { index } of text.matchAll(named)) {
    const title = [...text.slice(0, index).matchAll(TITLE)].at(-1)?.[2] ?? [...text.slice(index).matchAll(TITLE)][0]?.[2];
    if (title !== undefined) return title.replaceAll('\\', '');
  }
  return undefined;
};

interface Case {
  readonly id: string;
}

const caseNaming = (text: string, code: string): string | undefined => {
  const { cases = [] } = JSON.parse(text) as { readonly cases?: readonly Case[] };
  return cases.find((each) => JSON.stringify(each).includes(`"${code}"`))?.id;
};
