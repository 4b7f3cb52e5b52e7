import {
  type Address,
  SERVICE_NAMES,
  SUBJECTS,
  SUBJECT_ROOT,
  type ServiceName,
  type StreamName,
  type SubjectRow,
  type SubjectVerb,
  addressPath,
  encodeName,
  inboxPrefix,
  namespaceSubject,
  principalSubject,
} from '@sharedos/contracts';
import { discoveryRights, jetStreamRights } from './js-rights.ts';

/** What one user of the broker may do: subjects and patterns. Whatever is not listed is refused. */
export interface UserRights {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** Whether it may also answer what it was asked, once each: the broker then lets it publish on the reply subject of what it received. */
  readonly answers?: true;
}

/** One principal that may connect to the broker. An auditor also hears its namespace's live feed. */
export interface BrokerPrincipal {
  readonly namespaceId: string;
  readonly principal: Address;
  readonly auditor?: boolean;
}

/** The user that makes the streams; it can neither publish into them nor read them. */
export const PROVISIONER = 'provisioner';

/** The user that looks at what runs: which replicas there are, and how the streams are set. It can say and change nothing. */
export const OPERATOR = 'operator';

/** Users in CORE that are no service. */
export type Maintainer = typeof PROVISIONER | typeof OPERATOR;

/** The streams that a service works off in lanes, one for each namespace, whose consumers it makes itself. @see work-queue.ts */
export const WORK_QUEUES = {
  'tool-executor': { stream: 'TURNS', verbs: ['turn.request', 'turn.recipient'] },
} as const satisfies Partial<Record<ServiceName, { readonly stream: StreamName; readonly verbs: readonly SubjectVerb[] }>>;

/** The durable consumers that the provisioner makes, by the service that pulls from them. @see streams.ts */
export const DURABLE_CONSUMERS = {
  'audit-projector': { stream: 'LEDGER', name: 'audit-projector' },
} as const satisfies Partial<Record<ServiceName, { readonly stream: StreamName; readonly name: string }>>;

const VERBS = Object.keys(SUBJECTS) as SubjectVerb[];
const rowsWhere = <Use extends SubjectRow['use']>(...uses: readonly Use[]) =>
  VERBS.map((verb) => ({ verb, row: SUBJECTS[verb] as SubjectRow })).filter(
    (entry): entry is { verb: SubjectVerb; row: Extract<SubjectRow, { use: Use }> } => uses.some((use) => use === entry.row.use),
  );

/** Every subject of a row, for all namespaces and principals. */
export const subjectPatterns = (verb: SubjectVerb): readonly string[] => {
  const base = `${SUBJECT_ROOT}.*.${verb}`;
  switch (SUBJECTS[verb].use) {
    case 'principal-request':
    case 'principal-stream':
      return [`${base}.*.*`];
    case 'agent-answers':
      return [`${base}.agent.*`];
    case 'to-principal':
      return [`${base}.*.*.>`];
    case 'feed':
    case 'internal-stream':
      return [`${base}.>`];
    case 'internal-request':
      // Some name one process after the verb, some do not; both stay among services.
      return [base, `${base}.>`];
  }
};

/** The subjects that a stream holds. A request/reply subject is never among them: the broker would answer in the service's place. */
export const streamSubjects = (stream: StreamName): readonly string[] =>
  VERBS.filter((verb) => (SUBJECTS[verb] as { readonly stream?: StreamName }).stream === stream).flatMap(subjectPatterns);

/**
 * What crosses from EDGE to CORE (requests), from CORE to EDGE (answers, feed), and what CORE asks of EDGE (agents); nothing else does.
 * @see design §4, rule 2
 */
export const crossings = (): {
  readonly requests: readonly string[];
  readonly answers: readonly string[];
  readonly agents: readonly string[];
} => ({
  requests: rowsWhere('principal-request', 'principal-stream').flatMap(({ verb }) => subjectPatterns(verb)),
  answers: rowsWhere('to-principal', 'feed').flatMap(({ verb }) => subjectPatterns(verb)),
  agents: rowsWhere('agent-answers').flatMap(({ verb }) => subjectPatterns(verb)),
});

/** The inbox of a user in CORE; connect with it as `inboxPrefix`, or no answer arrives. */
export const serviceInboxPrefix = (user: ServiceName | Maintainer): string => `_INBOX_SERVICE.${user}`;

/** The name a principal logs in with. Encoded by parts, so that no two principals share one. */
export const principalUser = (namespaceId: string, principal: Address): string =>
  `principal.${encodeName(namespaceId, ...addressPath(principal))}`;

/**
 * A principal asks under its own tokens and hears its own answers. Every right is a literal subject or one under its own
 * tokens; there is nothing under `$JS`, because whoever makes a consumer chooses where the broker writes.
 */
export const principalRights = ({ namespaceId, principal, auditor }: BrokerPrincipal): UserRights => ({
  publish: rowsWhere('principal-request', 'principal-stream').map(({ verb }) =>
    principalSubject(verb as 'turn.get', namespaceId, principal),
  ),
  subscribe: [
    `${inboxPrefix(namespaceId, principal)}.>`,
    ...rowsWhere('to-principal').map(({ verb }) => `${principalSubject(verb as 'turn.result', namespaceId, principal)}.>`),
    ...(principal.kind === 'agent'
      ? rowsWhere('agent-answers').map(({ verb }) => principalSubject(verb as 'runtime.step', namespaceId, principal))
      : []),
    ...(auditor === true ? rowsWhere('feed').map(({ verb }) => `${namespaceSubject(verb, namespaceId)}.>`) : []),
  ],
  ...(principal.kind === 'agent' ? { answers: true } : {}),
});

/** A service says and hears what the subject table names it for, and has of JetStream what those rows need. */
export const serviceRights = (service: ServiceName): UserRights => {
  const served = rowsWhere('principal-request', 'internal-request').filter(({ row }) => row.servedBy === service);
  const asked = rowsWhere('internal-request', 'agent-answers').filter(({ row }) => row.from.includes(service));
  const written = rowsWhere('to-principal', 'internal-stream').filter(({ row }) => row.from.includes(service));
  return {
    publish: unique([
      ...[...asked, ...written].flatMap(({ verb }) => subjectPatterns(verb)),
      ...replyRights(service),
      ...readingRights(service),
    ]),
    subscribe: unique([
      `${serviceInboxPrefix(service)}.>`,
      ...served.flatMap(({ verb }) => subjectPatterns(verb)),
      // What is queued is taken from the stream; that something was, is heard.
      ...(workQueueOf(service)?.verbs.flatMap(subjectPatterns) ?? []),
      ...discoveryRights(service),
    ]),
  };
};

/** The provisioner makes and describes streams and consumers. It cannot delete or purge, so a wrong configuration loses nothing. */
export const provisionerRights = (): UserRights => ({
  publish: [
    '$JS.API.INFO',
    ...['CREATE', 'UPDATE', 'INFO'].map((verb) => `$JS.API.STREAM.${verb}.*`),
    '$JS.API.CONSUMER.INFO.*.*',
    // Only durable consumers, under the names that are ours; the server checks that the body says the same.
    ...Object.values(DURABLE_CONSUMERS).map(({ stream, name }) => `$JS.API.CONSUMER.CREATE.${stream}.${name}`),
  ],
  subscribe: [`${serviceInboxPrefix(PROVISIONER)}.>`],
});

/** The operator asks who is there and how streams are set. None of it reads a message, and none of it changes anything. */
export const operatorRights = (): UserRights => ({
  publish: [
    ...['PING', 'INFO', 'STATS'].flatMap((verb) => [`$SRV.${verb}`, `$SRV.${verb}.*`, `$SRV.${verb}.*.*`]),
    '$JS.API.INFO',
    '$JS.API.STREAM.INFO.*',
    '$JS.API.CONSUMER.INFO.*.*',
  ],
  subscribe: [`${serviceInboxPrefix(OPERATOR)}.>`],
});

/** Where a service answers: requests that crossed from EDGE, services that may ask it, and the operator asking who is there. */
const replyRights = (service: ServiceName): readonly string[] => {
  const askers = SERVICE_NAMES.filter((asker) =>
    rowsWhere('internal-request').some(({ row }) => row.servedBy === service && row.from.includes(asker)),
  );
  return ['_R_.>', ...[...askers, OPERATOR as typeof OPERATOR].map((asker) => `${serviceInboxPrefix(asker)}.>`)];
};

/** The streams that a service reads, writes or works off; it checks them at its start. */
export const streamsOf = (service: ServiceName): readonly StreamName[] => {
  const read = rowsWhere('internal-stream').filter(({ row }) => row.readBy.includes(service));
  const written = rowsWhere('to-principal', 'internal-stream').filter(({ row }) => row.from.includes(service));
  const queued = rowsWhere('principal-stream').filter(({ row }) => row.servedBy === service);
  return [
    ...new Set([...read, ...written, ...queued].flatMap(({ row }) => ('stream' in row && row.stream !== undefined ? [row.stream] : []))),
  ];
};

const workQueueOf = (service: ServiceName): { readonly stream: StreamName; readonly verbs: readonly SubjectVerb[] } | undefined =>
  Object.entries(WORK_QUEUES).find(([name]) => name === service)?.[1];

const readingRights = (service: ServiceName): readonly string[] => {
  const read = rowsWhere('internal-stream').filter(({ row }) => row.readBy.includes(service));
  const queue = workQueueOf(service);
  const durable = Object.entries(DURABLE_CONSUMERS).find(([name]) => name === service)?.[1];
  return [
    // Each stream is checked at start; a write whose fate is unknown is read back; a queued request can be listed.
    ...streamsOf(service).flatMap((stream) => [...jetStreamRights.head(stream), ...jetStreamRights.read(stream)]),
    ...read.flatMap(({ verb, row }) => [
      ...jetStreamRights.follow(row.stream),
      ...subjectPatterns(verb).flatMap((pattern) => jetStreamRights.follow(row.stream, pattern)),
    ]),
    ...(durable === undefined ? [] : jetStreamRights.consume(durable.stream, durable.name)),
    ...(queue === undefined
      ? []
      : queue.verbs.flatMap(subjectPatterns).flatMap((pattern) => jetStreamRights.workOff(queue.stream, pattern))),
    // A principal's turns are listed from what they were answered.
    ...(service === 'tool-executor'
      ? (['turn.event', 'turn.result'] as const).flatMap((verb) =>
          subjectPatterns(verb).flatMap((pattern) => jetStreamRights.follow('TURN_EVENTS', pattern)),
        )
      : []),
    // An acknowledged message leaves its inbox for good.
    ...(service === 'messaging-router' ? ['$JS.API.STREAM.MSG.DELETE.MESSAGES'] : []),
  ];
};

const unique = (subjects: readonly string[]): readonly string[] => [...new Set(subjects)];
