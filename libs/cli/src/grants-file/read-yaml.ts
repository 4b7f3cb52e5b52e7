import { readFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { type Document, LineCounter, type Node, isCollection, isMap, isNode, isScalar, parseDocument } from 'yaml';
import type { z } from 'zod';
import type { Terminal } from '../command-line.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { printable } from '../table.ts';

const BYTES_MAX = 1024 * 1024;
const ALIASES_MAX = 100;
const ISSUES_SHOWN = 10;

type Place = readonly (string | number)[];

/** What a file says, and where it says it. */
export interface YamlFile<T> {
  readonly value: T;
  /** The file's name, for messages. */
  readonly name: string;
  /** `name:line` of a place in the file, or of the nearest place around it. */
  at(place: Place): string;
}

/**
 * Reads a YAML file by its schema.
 *
 * @throws CommandFailure that names the line of everything that is wrong in it, up to ten things.
 */
export const readYaml = async <T>(terminal: Terminal, file: string, schema: z.ZodType<T>): Promise<YamlFile<T>> => {
  const text = await readFile(resolve(terminal.cwd, file), 'utf8').catch((error: Error) => {
    throw usageFailure(`${file} cannot be read: ${error.message}`);
  });
  return parseYaml(text, file, schema);
};

export const parseYaml = <T>(text: string, file: string, schema: z.ZodType<T>): YamlFile<T> => {
  const name = basename(file);
  if (Buffer.byteLength(text) > BYTES_MAX) throw usageFailure(`${name} is larger than ${BYTES_MAX} bytes`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineOf = (offset: number): number => Math.max(1, lines.linePos(offset).line);
  const broken = document.errors.map(({ message, pos }) => `${name}:${lineOf(pos[0])}: ${message}`);
  if (broken.length > 0) throw wrong(broken);
  const at = (place: Place): string => `${name}:${lineOf(offsetOf(document, place))}`;
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    throw wrong([`${name}: ${(error as Error).message}`]);
  }
  const parsed = schema.safeParse(raw);
  if (parsed.success) return { value: parsed.data, name, at };
  throw wrong(
    parsed.error.issues.map((issue) => {
      const place = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
      if (issue.code === 'unrecognized_keys')
        return issue.keys.map((key) => `${at([...place, key])}: ${where([...place, key])} is not known here`).join('\n');
      return `${at(place)}: ${where(place)} ${issue.message}`;
    }),
  );
};

/** Several things that are wrong in files, a line each. */
export const wrong = (said: readonly string[]): CommandFailure => {
  const more = said.length > ISSUES_SHOWN ? [`and ${said.length - ISSUES_SHOWN} more`] : [];
  return new CommandFailure(EXIT.usage, 'invalid_file', [...said.slice(0, ISSUES_SHOWN), ...more].map(printableLines).join('\n'));
};

const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

/** `grants[2].to`, for people. */
const where = (place: Place): string =>
  place.length === 0
    ? 'the file'
    : place.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('');

/** Where a place begins; a member that is not there is looked for where it would have to be. */
const offsetOf = (document: Document, place: Place): number => {
  let node: Node | null = document.contents;
  let offset = node?.range?.[0] ?? 0;
  for (const part of place) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => (isScalar(key) ? key.value : key) === part);
      if (pair === undefined) return offset;
      offset = isNode(pair.key) ? (pair.key.range?.[0] ?? offset) : offset;
      node = isNode(pair.value) ? pair.value : null;
    } else if (isCollection(node)) {
      const item = node.items[part as number];
      if (!isNode(item)) return offset;
      node = item;
      offset = item.range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
};
