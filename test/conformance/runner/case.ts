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

/** Every case of a folder, in order of file and place. */
export const readCases = async (folder: string): Promise<readonly Case[]> => {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
  const cases: Case[] = [];
  for (const name of names) {
    const file = JSON.parse(await readFile(join(folder, name), 'utf8')) as Bag & { cases: Case[] };
    onlyKnown(name, file, FILE_KEYS);
    if (file['format'] !== FORMAT) throw new UnknownToRunner(`${name} is of format ${String(file['format'])}, not ${FORMAT}`);
    cases.push(...file.cases);
  }
  const twice = cases.find(({ id }, index) => cases.findIndex((other) => other.id === id) !== index);
  if (twice !== undefined) throw new UnknownToRunner(`two cases are called ${twice.id}`);
  return cases;
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
