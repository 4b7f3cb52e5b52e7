import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WIRE_MESSAGES, parseValue } from '@sharedos/contracts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { EXAMPLES, OUTSIDE_THE_SCHEMA } from './examples.ts';
import { generatedFiles } from './generated-files.ts';
import { fileNameOf, jsonSchemas } from './json-schemas.ts';

const folder = join(import.meta.dirname, '..', '..', 'schemas');
const files = generatedFiles();
const schemas = jsonSchemas();
const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: false });
addFormats.default(ajv);

const accepts = (name: string, value: unknown): { readonly zod: boolean; readonly ajv: boolean } => {
  const message = WIRE_MESSAGES.get(name);
  if (message === undefined) throw new Error(`no wire message is called ${name}`);
  return { zod: parseValue(message, value).ok, ajv: ajv.validate(schemas.get(`wire/${fileNameOf(name)}.json`) as object, value) };
};

const examplesOf = (kind: 'valid' | 'invalid') =>
  Object.entries(EXAMPLES).flatMap(([name, examples]) =>
    Object.entries(examples[kind]).map(([what, value]) => [name, what, value] as const),
  );

describe('the published schemas', () => {
  it('are what libs/contracts says', async () => {
    for (const [path, text] of files) expect(await readFile(join(folder, path), 'utf8').catch(() => 'absent'), path).toBe(text);
  });

  it('have examples for every body on the wire, and for no other', () => {
    expect(Object.keys(EXAMPLES).toSorted()).toEqual([...WIRE_MESSAGES.keys()].toSorted());
  });

  it.each([...schemas.keys()])('%s is itself valid draft 2020-12', (path) => {
    expect(ajv.validateSchema(schemas.get(path) as object)).toBe(true);
  });

  it.each(examplesOf('valid'))('%s: zod and ajv both accept %s', (name, _, value) => {
    expect(accepts(name, value)).toEqual({ zod: true, ajv: true });
  });

  it.each(examplesOf('invalid').filter(([, what]) => !(what in OUTSIDE_THE_SCHEMA)))('%s: zod and ajv both refuse %s', (name, _, value) => {
    expect(accepts(name, value)).toEqual({ zod: false, ajv: false });
  });

  it.each(examplesOf('invalid').filter(([, what]) => what in OUTSIDE_THE_SCHEMA))('%s: only our parser refuses %s', (name, _, value) => {
    expect(accepts(name, value)).toEqual({ zod: false, ajv: true });
  });

  it('name no rule outside the schema that no example shows', () => {
    const shown = new Set(examplesOf('invalid').map(([, what]) => what));
    expect(Object.keys(OUTSIDE_THE_SCHEMA).filter((rule) => !shown.has(rule))).toEqual([]);
  });
});

describe('the AsyncAPI document', () => {
  const document = JSON.parse(files.get('asyncapi.json') as string) as Record<string, unknown>;
  const pointed = (pointer: string): unknown =>
    pointer
      .slice(2)
      .split('/')
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);

  it('refers to nothing that is not there', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference as string);
    expect(references.length).toBeGreaterThan(100);
    for (const reference of references) {
      expect(reference.startsWith('#/') ? pointed(reference) : files.get(reference.slice(2)), reference).toBeDefined();
    }
  });

  it('gives each parameter of an address, and no other, a description', () => {
    for (const channel of Object.values(document['channels'] as Record<string, { address: string | null; parameters?: object }>)) {
      const inAddress = [...(channel.address ?? '').matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(Object.keys(channel.parameters ?? {})).toEqual(inAddress);
    }
  });
});
