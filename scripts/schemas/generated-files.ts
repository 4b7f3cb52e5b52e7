import { asyncApi } from './asyncapi.ts';
import { EXAMPLES } from './examples.ts';
import { fileNameOf, jsonSchemas } from './json-schemas.ts';
import { openApi } from './openapi.ts';

/** Everything under `schemas/` that is generated: text by path. `README.md` there is written by hand. */
export const generatedFiles = (): ReadonlyMap<string, string> => {
  const files = new Map<string, unknown>([...jsonSchemas(), ['asyncapi.json', asyncApi()], ['openapi.json', openApi()]]);
  for (const [name, { valid, invalid }] of Object.entries(EXAMPLES)) {
    for (const [kind, examples] of Object.entries({ valid, invalid })) {
      for (const [what, value] of Object.entries(examples)) files.set(`examples/${fileNameOf(name)}/${kind}-${what}.json`, value);
    }
  }
  return new Map([...files].map(([path, value]) => [path, `${JSON.stringify(value, null, 2)}\n`]));
};
