import { PUBLIC_CONTRACTS, WIRE_MESSAGES } from '@sharedos/contracts';
import { z } from 'zod';

export type JsonSchema = Record<string, unknown>;

/** Contracts used inside others appear once, under their own name, in `$defs`. */
const named = z.registry<{ id: string }>();
for (const [name, schema] of Object.entries(PUBLIC_CONTRACTS)) {
  // A name for a scalar would only hide "a string of 1..256" behind a reference.
  if (!['Id', 'Purpose', 'Path', 'Ts', 'Hash', 'Revision'].includes(name)) named.add(schema as z.ZodType, { id: name });
}

const schemaOf = (schema: z.ZodType, id: string, title: string): JsonSchema => {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: 'input',
    metadata: named as unknown as typeof z.globalRegistry,
    override: ({ zodSchema, jsonSchema }) => Object.assign(jsonSchema, z.globalRegistry.get(zodSchema) ?? {}),
  });
  delete rest.id;
  return { $schema, $id: id, title, ...rest };
};

/** `turn.request/1` as a file name. */
export const fileNameOf = (wireName: string): string => wireName.replace('/', '.v');

/** JSON Schemas by path under `schemas/`. */
export const jsonSchemas = (): ReadonlyMap<string, JsonSchema> => {
  const files = new Map<string, JsonSchema>();
  for (const [name, schema] of Object.entries(PUBLIC_CONTRACTS)) {
    files.set(`contracts/${name}.v1.json`, schemaOf(schema as z.ZodType, `urn:sharedos:contract:${name}:1`, name));
  }
  for (const [name, message] of WIRE_MESSAGES) {
    files.set(`wire/${fileNameOf(name)}.json`, schemaOf(message.schema, `urn:sharedos:wire:${name.replace('/', ':')}`, name));
  }
  return files;
};
