import {
  SCHEMA_HEADER,
  SUBJECTS,
  SUBJECT_BODIES,
  SUBJECT_ROOT,
  type SubjectRow,
  type SubjectVerb,
  WIRE_MESSAGES,
} from '@sharedos/contracts';
import { fileNameOf } from './json-schemas.ts';

const VERBS = Object.keys(SUBJECTS) as SubjectVerb[];
const namesPrincipal = (verb: SubjectVerb): boolean =>
  ['principal-request', 'principal-stream', 'to-principal', 'agent-answers'].includes(SUBJECTS[verb].use) || verb === 'inbox';

/** What follows the tokens of the verb and the principal, for those subjects that have more. */
const REST: Partial<Record<SubjectVerb, readonly string[]>> = {
  'turn.result': ['executionId'],
  'turn.event': ['executionId'],
  'turn.refused': ['sequence'],
  'execution.control': ['ownerId'],
  audit: ['outcome', 'type'],
  'feed.audit': ['outcome', 'type'],
  ledger: ['kind', 'key'],
  log: ['stream'],
};

const PARAMETERS: Readonly<Record<string, string>> = {
  namespace: 'The execution namespace (tenant), as one encoded token.',
  principalKind: 'human, agent, group or service.',
  principalId: 'The identifier of the principal, as one encoded token.',
  executionId: 'The execution the body is about.',
  sequence: 'The place of the request in the work queue.',
  ownerId: 'The one process that claimed the turn.',
  outcome: 'allowed, denied, succeeded, failed or escalated.',
  type: 'The type of the record; its dots are further tokens.',
  kind: 'What is claimed: an execution or a use.',
  key: 'Further tokens that name it.',
  stream: 'The event stream, one token a component.',
};

const parametersOf = (verb: SubjectVerb): readonly string[] => [
  'namespace',
  ...(namesPrincipal(verb) ? ['principalKind', 'principalId'] : []),
  ...(REST[verb] ?? []),
];

const addressOfVerb = (verb: SubjectVerb): string => {
  const [namespace, ...rest] = parametersOf(verb).map((name) => `{${name}}`);
  return [SUBJECT_ROOT, namespace, verb, ...rest].join('.');
};

const described = (row: SubjectRow): string => {
  switch (row.use) {
    case 'principal-request':
      return `A principal asks under its own tokens; ${row.servedBy} answers.`;
    case 'principal-stream':
      return `A principal publishes under its own tokens; stream ${row.stream} keeps it as a work queue for ${row.servedBy}.`;
    case 'to-principal':
      return `${row.from.join(', ')} publishes; that principal alone may subscribe.`;
    case 'agent-answers':
      return `${row.from.join(', ')} asks; that agent alone hears it and may answer.`;
    case 'feed':
      return 'A live copy of the audit stream for the configured auditors of the namespace.';
    case 'internal-request':
      return `Services only: ${row.from.join(', ')} asks, ${row.servedBy} answers.`;
    case 'internal-stream':
      return `Services only: ${row.from.join(', ')} writes, ${row.readBy.join(', ')} reads; stream ${row.stream}.`;
  }
};

const channelId = (verb: SubjectVerb): string => verb.replaceAll('.', '_');
const messageRef = (name: string): { readonly $ref: string } => ({ $ref: `#/components/messages/${fileNameOf(name)}` });
const inChannel = (channel: string, names: readonly string[]) =>
  names.map((name) => ({ $ref: `#/channels/${channel}/messages/${fileNameOf(name)}` }));

/** AsyncAPI 3 of the whole wire, from the subject table: as the services see it, they receive requests and send the rest. */
export const asyncApi = (): Record<string, unknown> => {
  const channels: Record<string, unknown> = {};
  const operations: Record<string, unknown> = {};
  for (const verb of VERBS) {
    const row: SubjectRow = SUBJECTS[verb];
    const { carries, reply } = SUBJECT_BODIES[verb];
    const id = channelId(verb);
    channels[id] = {
      address: addressOfVerb(verb),
      description: described(row),
      parameters: Object.fromEntries(parametersOf(verb).map((name) => [name, { description: PARAMETERS[name] }])),
      messages: Object.fromEntries(carries.map(({ name }) => [fileNameOf(name), messageRef(name)])),
    };
    const receives = ['principal-request', 'principal-stream', 'internal-request'].includes(row.use);
    operations[id] = {
      action: receives ? 'receive' : 'send',
      channel: { $ref: `#/channels/${id}` },
      messages: inChannel(
        id,
        carries.map(({ name }) => name),
      ),
      ...(reply === undefined
        ? {}
        : {
            reply: {
              address: { location: '$message.header#/reply', description: 'The inbox of the one who asks.' },
              channel: { $ref: `#/channels/${id}_reply` },
              messages: inChannel(`${id}_reply`, [reply.name]),
            },
          }),
    };
    if (reply !== undefined) {
      channels[`${id}_reply`] = {
        address: null,
        description: `Answers to ${verb}.`,
        messages: { [fileNameOf(reply.name)]: messageRef(reply.name) },
      };
    }
  }
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'SharedOS',
      version: '1',
      description:
        'Generated from the subject table of libs/contracts. A caller is known by the subject that the broker let through, never by a body.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    servers: {
      nats: { host: 'localhost:4222', protocol: 'nats', description: 'NATS with JetStream; every principal signs in under its own name.' },
    },
    channels,
    operations,
    components: { messages: Object.fromEntries([...WIRE_MESSAGES.keys()].map((name) => [fileNameOf(name), messageOf(name)])) },
  };
};

const messageOf = (name: string): Record<string, unknown> => ({
  name,
  contentType: 'application/json',
  headers: {
    type: 'object',
    properties: { [SCHEMA_HEADER]: { const: name }, traceparent: { type: 'string', description: 'W3C trace context' } },
    required: [SCHEMA_HEADER],
  },
  payload: { schemaFormat: 'application/schema+json;version=draft-2020-12', schema: { $ref: `./wire/${fileNameOf(name)}.json` } },
});
