import { ApiErrorResponse, PUBLIC_CONTRACTS } from '@sharedos/contracts';
import { z } from 'zod';
import { ROUTES, type Route, TurnView } from '../../services/gateway/src/routes.ts';
import type { JsonSchema } from './json-schemas.ts';

const SCALARS = ['Id', 'Purpose', 'Path', 'Ts', 'Hash', 'Revision'];
const reference = (name: string): string => `#/components/schemas/${name}`;

const named = z.registry<{ id: string }>();
const members = new Set<z.ZodType>();
for (const [name, schema] of Object.entries({ ...PUBLIC_CONTRACTS, TurnView })) {
  // One contract may have two names; the first is the one it goes by.
  if (SCALARS.includes(name) || members.has(schema as z.ZodType)) continue;
  members.add(schema as z.ZodType);
  named.add(schema as z.ZodType, { id: name });
}

/** One schema, with the contracts in it by reference. */
const schemaOf = (schema: z.ZodType): JsonSchema => {
  const known = named.get(schema);
  if (known !== undefined) return { $ref: reference(known.id) };
  if (schema instanceof z.ZodArray) return { type: 'array', items: schemaOf(schema.element as z.ZodType) };
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
};

const component = (schemas: Readonly<Record<string, JsonSchema>>, name: string): JsonSchema => {
  const { $schema: _, $id: __, id: ___, ...rest } = schemas[name] as JsonSchema;
  return rest;
};

const json = (schema: z.ZodType) => ({ 'application/json': { schema: schemaOf(schema) } });
const refused = (description: string) => ({ description, content: json(ApiErrorResponse) });

const ERRORS = {
  400: 'The request does not match its contract: nobody was asked.',
  401: 'The bearer is not known.',
  403: 'This principal may not ask for it here: no decision was made.',
  404: 'There is no such thing for this principal.',
  409: 'The request stands against what is so: its id was used for something else, or its time is over.',
  413: 'The body is larger than is taken.',
  429: 'Too much at once.',
  503: 'Nobody could find out: ask again.',
} as const;

const answersOf = (route: Route): Record<string, unknown> => {
  const answers: Record<string, unknown> =
    'events' in route.answer
      ? {
          200: {
            description: `Server-sent events: ${Object.keys(route.answer.events).join(', ')}.`,
            content: eventsOf(route.answer.events),
          },
        }
      : {
          200: {
            description: route.open === true ? 'So it is.' : 'What was decided, a denial or a failure included.',
            content: json(route.answer),
          },
        };
  for (const [status, description] of Object.entries(route.also ?? {}))
    answers[status] = { description, ...('events' in route.answer ? {} : { content: json(route.answer) }) };
  if (route.open === true) return { ...answers, 503: refused(ERRORS[503]) };
  for (const [status, description] of Object.entries(ERRORS)) answers[status] = refused(description);
  return answers;
};

const eventsOf = (events: Readonly<Record<string, z.ZodType>>) => ({
  'text/event-stream': { schema: { type: 'string', description: `Events whose data is: ${Object.keys(events).join(', ')}, as JSON.` } },
});

const parametersOf = (route: Route): readonly object[] => [
  ...[...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
  ...('events' in route.answer
    ? [{ name: 'Last-Event-ID', in: 'header', required: false, description: 'Continue after this event.', schema: { type: 'string' } }]
    : []),
];

/** OpenAPI 3.1 of the gateway, from the table that its server is made of. */
export const openApi = (): Record<string, unknown> => {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [operationId, route] of Object.entries(ROUTES) as [string, Route][]) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    const parameters = parametersOf(route);
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: {
        operationId,
        summary: route.summary,
        ...(route.open === true ? { security: [] } : {}),
        ...(parameters.length === 0 ? {} : { parameters }),
        ...(route.body === undefined ? {} : { requestBody: { required: true, content: json(route.body) } }),
        responses: answersOf(route),
      },
    };
  }
  const { schemas } = z.toJSONSchema(named, { target: 'draft-2020-12', io: 'input', uri: reference }) as unknown as {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
  const used = referred(paths, schemas);
  return {
    openapi: '3.1.0',
    info: { title: 'SharedOS gateway', version: '1', description: 'What a principal may ask for over HTTP. MCP is at /mcp beside it.' },
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: Object.fromEntries(used.map((name) => [name, component(schemas, name)])),
    },
    security: [{ bearer: [] }],
  };
};

/** Names of the contracts that the paths refer to, and those that these refer to. */
const referred = (paths: object, schemas: Readonly<Record<string, JsonSchema>>): readonly string[] => {
  const found = new Set<string>();
  const look = (within: unknown): void => {
    for (const [, name] of JSON.stringify(within).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (name === undefined || found.has(name) || schemas[name] === undefined) continue;
      found.add(name);
      look(component(schemas, name));
    }
  };
  look(paths);
  return [...found].toSorted();
};
