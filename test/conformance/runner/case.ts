import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export type Bag = Record<string, unknown>;

export interface Step {
  readonly id: string;
  readonly op: string;
  readonly turn?: string;
  readonly as?: Bag;
  readonly input?: Bag;
}

export interface Case {
  readonly id: string;
  readonly title: string;
  readonly profile?: string;
  readonly covers?: readonly string[];
  readonly world: Bag;
  readonly steps: readonly Step[];
  readonly expect: readonly (Bag & { readonly step: string })[];
}

/** A case that says something this runner does not know. What is not understood must not pass. */
export class UnknownToRunner extends Error {
  override readonly name = 'UnknownToRunner';
}

const CASE_KEYS = ['id', 'title', 'profile', 'confidence', 'covers', 'notes', 'world', 'steps', 'expect'];
const STEP_KEYS = ['id', 'op', 'turn', 'as', 'input'];
const FILE_KEYS = ['format', 'area', 'about', 'cases'];
const FORMAT = 'kernel-cases/1';

/** Objects that are read field by field: one more field than is known is an error, not a remark. */
export const onlyKnown = (what: string, value: object, known: Iterable<string>): void => {
  const names = new Set(known);
  const unknown = Object.keys(value).filter((key) => !names.has(key));
  if (unknown.length > 0) throw new UnknownToRunner(`${what} has ${unknown.join(', ')}, which this runner does not know`);
};

/** What a folder holds: its cases, and the files that could not be read as such, each a failure of its own. */
export interface CaseFolder {
  readonly cases: readonly Case[];
  readonly broken: readonly { readonly id: string; readonly why: string }[];
}

/** Every case of some folders, in order of file and place. */
export const readCases = async (...folders: readonly string[]): Promise<CaseFolder> => {
  const cases: Case[] = [];
  const broken: { readonly id: string; readonly why: string }[] = [];
  for (const folder of folders) {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
    if (names.length === 0) broken.push({ id: folder, why: 'there are no cases in it' });
    for (const name of names) {
      try {
        cases.push(...readFileOf(name, JSON.parse(await readFile(join(folder, name), 'utf8'))));
      } catch (error) {
        broken.push({ id: name, why: error instanceof Error ? error.message : String(error) });
      }
    }
  }
  const seen = new Set<string>();
  for (const { id } of cases) {
    if (seen.has(id)) broken.push({ id, why: 'two cases have this id' });
    seen.add(id);
  }
  return { cases, broken };
};

const readFileOf = (name: string, content: unknown): readonly Case[] => {
  if (typeof content !== 'object' || content === null) throw new UnknownToRunner(`${name} is no object`);
  onlyKnown(name, content, FILE_KEYS);
  const { format, cases } = content as Bag;
  if (format !== FORMAT) throw new UnknownToRunner(`${name} is of format ${String(format)}, not ${FORMAT}`);
  if (!Array.isArray(cases) || !cases.every((one: unknown) => typeof (one as Case | null)?.id === 'string'))
    throw new UnknownToRunner(`${name} holds something that is no case`);
  return cases as readonly Case[];
};

/** Holds a case to the keys of its format. */
export const checkShape = (one: Case): void => {
  onlyKnown('the case', one, CASE_KEYS);
  for (const step of one.steps) checkStep(step);
  for (const wanted of one.expect) {
    if (!one.steps.some(({ id }) => id === wanted.step)) throw new UnknownToRunner(`an expectation names no step: ${wanted.step}`);
  }
};

export const checkStep = (step: Step): void => onlyKnown(`step ${step.id}`, step, STEP_KEYS);
