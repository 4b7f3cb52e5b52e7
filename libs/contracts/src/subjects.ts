import { decodeToken, encodeToken } from './names.ts';
import { ADDRESS_KINDS, type Address, type AddressKind, addressId, addressOf } from './principals.ts';

/** Every subject starts with this. A change of the wire is a new prefix beside the old one. */
export const SUBJECT_ROOT = 'sharedos.v1';

export type ServiceName = 'authorizer' | 'tool-executor' | 'messaging-router' | 'audit-projector';
export const SERVICE_NAMES: readonly ServiceName[] = ['authorizer', 'tool-executor', 'messaging-router', 'audit-projector'];

/** Streams of the system; each holds the subjects of the rows below that name it. */
export type StreamName = 'TURNS' | 'TURN_EVENTS' | 'LEDGER' | 'MESSAGES' | 'AUDIT' | 'SEALS' | 'LOG';

/**
 * Who may say what on the wire: the table of design §4. Permissions of the broker, exports between its accounts, and the
 * handlers of the services are all derived from it, so a row is the only place where a right on the wire is given.
 *
 * - `principal-request`: `….<verb>.<kind>.<id>`, a principal publishes under its own tokens, services answer.
 * - `principal-stream`: the same subject, kept by a stream as a work queue.
 * - `to-principal`: `….<verb>.<kind>.<id>.<more…>`, services publish, that principal alone subscribes.
 * - `agent-answers`: `….<verb>.agent.<id>`, services ask, and that agent alone hears it and may answer.
 * - `feed`: services' records copied live to the namespace's configured auditors.
 * - `internal`: services only; no principal has any right on it.
 */
export type SubjectRow =
  | { readonly use: 'principal-request'; readonly servedBy: ServiceName }
  | { readonly use: 'principal-stream'; readonly servedBy: ServiceName; readonly stream: StreamName }
  | { readonly use: 'to-principal'; readonly from: readonly ServiceName[]; readonly stream?: StreamName }
  | { readonly use: 'agent-answers'; readonly from: readonly ServiceName[] }
  | { readonly use: 'feed' }
  | { readonly use: 'internal-request'; readonly from: readonly ServiceName[]; readonly servedBy: ServiceName }
  | {
      readonly use: 'internal-stream';
      readonly from: readonly ServiceName[];
      readonly readBy: readonly ServiceName[];
      readonly stream: StreamName;
    };

const DECIDERS = ['tool-executor', 'messaging-router', 'audit-projector'] as const;

export const SUBJECTS = {
  'turn.request': { use: 'principal-stream', servedBy: 'tool-executor', stream: 'TURNS' },
  'turn.cancel': { use: 'principal-request', servedBy: 'tool-executor' },
  'turn.list': { use: 'principal-request', servedBy: 'tool-executor' },
  'turn.get': { use: 'principal-request', servedBy: 'tool-executor' },
  'turn.result': { use: 'to-principal', from: ['tool-executor'], stream: 'TURN_EVENTS' },
  'turn.event': { use: 'to-principal', from: ['tool-executor'], stream: 'TURN_EVENTS' },
  'turn.refused': { use: 'to-principal', from: ['tool-executor'], stream: 'TURN_EVENTS' },
  'turn.recipient': { use: 'internal-stream', from: ['messaging-router'], readBy: ['tool-executor'], stream: 'TURNS' },
  'operation.show': { use: 'principal-request', servedBy: 'tool-executor' },
  'operation.list': { use: 'principal-request', servedBy: 'tool-executor' },
  'operation.resolve': { use: 'principal-request', servedBy: 'tool-executor' },
  'runtime.step': { use: 'agent-answers', from: ['tool-executor'] },
  'execution.control': { use: 'internal-request', from: ['tool-executor'], servedBy: 'tool-executor' },
  'grant.issue': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.derive': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.revoke': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.get': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.list': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.tree': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.watch': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.explain': { use: 'principal-request', servedBy: 'authorizer' },
  'grant.who': { use: 'principal-request', servedBy: 'authorizer' },
  'policy.set': { use: 'principal-request', servedBy: 'authorizer' },
  'policy.get': { use: 'principal-request', servedBy: 'authorizer' },
  'policy.stop': { use: 'principal-request', servedBy: 'authorizer' },
  'policy.resume': { use: 'principal-request', servedBy: 'authorizer' },
  'settings.set': { use: 'principal-request', servedBy: 'authorizer' },
  'settings.get': { use: 'principal-request', servedBy: 'authorizer' },
  'agent.register': { use: 'principal-request', servedBy: 'authorizer' },
  'agent.withdraw': { use: 'principal-request', servedBy: 'authorizer' },
  'agent.get': { use: 'principal-request', servedBy: 'authorizer' },
  'tools.list': { use: 'principal-request', servedBy: 'tool-executor' },
  'tools.namespaces': { use: 'principal-request', servedBy: 'tool-executor' },
  'tools.update': { use: 'principal-request', servedBy: 'tool-executor' },
  'mcp.add': { use: 'principal-request', servedBy: 'tool-executor' },
  'mcp.list': { use: 'principal-request', servedBy: 'tool-executor' },
  'mcp.inspect': { use: 'principal-request', servedBy: 'tool-executor' },
  'mcp.approve': { use: 'principal-request', servedBy: 'tool-executor' },
  'mcp.remove': { use: 'principal-request', servedBy: 'tool-executor' },
  'mcp.secret': { use: 'principal-request', servedBy: 'tool-executor' },
  'escalation.list': { use: 'principal-request', servedBy: 'authorizer' },
  'escalation.show': { use: 'principal-request', servedBy: 'authorizer' },
  'escalation.resolve': { use: 'principal-request', servedBy: 'authorizer' },
  'escalation.open': { use: 'internal-request', from: ['tool-executor'], servedBy: 'authorizer' },
  'authority.open': { use: 'internal-request', from: DECIDERS, servedBy: 'authorizer' },
  'authority.decide': { use: 'internal-request', from: DECIDERS, servedBy: 'authorizer' },
  'authority.tools': { use: 'internal-request', from: ['tool-executor'], servedBy: 'authorizer' },
  'authority.mcp': { use: 'internal-request', from: ['tool-executor'], servedBy: 'authorizer' },
  'authority.namespace': { use: 'internal-request', from: DECIDERS, servedBy: 'authorizer' },
  'authority.reach': { use: 'internal-request', from: DECIDERS, servedBy: 'authorizer' },
  'authority.explain': { use: 'internal-request', from: DECIDERS, servedBy: 'authorizer' },
  'authority.who': { use: 'internal-request', from: DECIDERS, servedBy: 'authorizer' },
  'authority.recompute': { use: 'internal-request', from: ['audit-projector'], servedBy: 'authorizer' },
  'authority.retrace': { use: 'internal-request', from: ['audit-projector'], servedBy: 'authorizer' },
  'authority.lineage': { use: 'internal-request', from: ['audit-projector'], servedBy: 'authorizer' },
  'usage.distrust': { use: 'internal-request', from: ['tool-executor', 'messaging-router'], servedBy: 'authorizer' },
  'usage.held': { use: 'internal-request', from: ['tool-executor'], servedBy: 'authorizer' },
  'usage.release': { use: 'internal-request', from: ['tool-executor'], servedBy: 'authorizer' },
  'message.send': { use: 'principal-request', servedBy: 'messaging-router' },
  'message.inbox': { use: 'principal-request', servedBy: 'messaging-router' },
  'message.ack': { use: 'principal-request', servedBy: 'messaging-router' },
  'message.rules': { use: 'principal-request', servedBy: 'messaging-router' },
  'message.route': { use: 'principal-request', servedBy: 'messaging-router' },
  'message.status': { use: 'principal-request', servedBy: 'messaging-router' },
  'message.take': { use: 'internal-request', from: ['tool-executor'], servedBy: 'messaging-router' },
  'message.deliver': { use: 'internal-request', from: ['tool-executor', 'authorizer'], servedBy: 'messaging-router' },
  'message.answer': { use: 'internal-request', from: ['tool-executor'], servedBy: 'messaging-router' },
  inbox: { use: 'internal-stream', from: ['messaging-router'], readBy: ['messaging-router'], stream: 'MESSAGES' },
  inboxrules: { use: 'internal-stream', from: ['messaging-router'], readBy: ['messaging-router'], stream: 'MESSAGES' },
  route: { use: 'internal-stream', from: ['messaging-router'], readBy: ['messaging-router'], stream: 'MESSAGES' },
  parked: { use: 'internal-stream', from: ['messaging-router'], readBy: ['messaging-router'], stream: 'MESSAGES' },
  reply: { use: 'internal-stream', from: ['messaging-router'], readBy: ['tool-executor'], stream: 'TURN_EVENTS' },
  audit: {
    use: 'internal-stream',
    from: ['authorizer', 'audit-projector', 'tool-executor', 'messaging-router'],
    readBy: ['audit-projector'],
    stream: 'AUDIT',
  },
  'feed.audit': { use: 'feed' },
  seal: { use: 'internal-stream', from: ['audit-projector'], readBy: ['audit-projector'], stream: 'SEALS' },
  'feed.seal': { use: 'feed' },
  'records.query': { use: 'principal-request', servedBy: 'audit-projector' },
  'records.replay': { use: 'principal-request', servedBy: 'audit-projector' },
  'records.summary': { use: 'principal-request', servedBy: 'audit-projector' },
  'records.recompute': { use: 'principal-request', servedBy: 'audit-projector' },
  'records.explain': { use: 'principal-request', servedBy: 'audit-projector' },
  'records.blame': { use: 'principal-request', servedBy: 'audit-projector' },
  ledger: {
    use: 'internal-stream',
    from: ['tool-executor', 'messaging-router'],
    readBy: ['tool-executor', 'messaging-router', 'audit-projector', 'authorizer'],
    stream: 'LEDGER',
  },
  log: { use: 'internal-stream', from: ['authorizer'], readBy: ['authorizer'], stream: 'LOG' },
} as const satisfies Record<string, SubjectRow>;

export type SubjectVerb = keyof typeof SUBJECTS;

type VerbsOf<Use extends SubjectRow['use']> = { [V in SubjectVerb]: (typeof SUBJECTS)[V]['use'] extends Use ? V : never }[SubjectVerb];

/** Verbs of the services' own records that name whom they are about. */
const ABOUT_PRINCIPAL = ['inbox', 'inboxrules', 'route', 'parked', 'reply', 'turn.recipient'] as const;

/** Verbs whose subject ends in the tokens of one principal. */
export type PrincipalVerb =
  | VerbsOf<'principal-request' | 'principal-stream' | 'to-principal' | 'agent-answers'>
  | (typeof ABOUT_PRINCIPAL)[number];
export type PrincipalRequestVerb = VerbsOf<'principal-request'>;
export type InternalRequestVerb = VerbsOf<'internal-request'>;

/** A subject that carries one principal: `sharedos.v1.<ns>.<verb>.<kind>.<id>[.<rest>…]`. */
export const principalSubject = (verb: PrincipalVerb, namespaceId: string, principal: Address, ...rest: readonly string[]): string =>
  [SUBJECT_ROOT, encodeToken(namespaceId), verb, principal.kind, encodeToken(addressId(principal)), ...rest.map(encodeToken)].join('.');

/** A subject of a namespace: `sharedos.v1.<ns>.<verb>[.<rest>…]`. */
export const namespaceSubject = (verb: SubjectVerb, namespaceId: string, ...rest: readonly string[]): string =>
  [SUBJECT_ROOT, encodeToken(namespaceId), verb, ...rest.map(encodeToken)].join('.');

/** The prefix of a principal's one inbox; the broker lets it subscribe to nothing else of that kind. */
export const inboxPrefix = (namespaceId: string, principal: Address): string =>
  ['_INBOX', encodeToken(namespaceId), principal.kind, encodeToken(addressId(principal))].join('.');

export interface ParsedSubject {
  readonly verb: SubjectVerb;
  readonly namespaceId: string;
  /** Present exactly when the row names a principal; this, and nothing in a body, is the identity of a caller. */
  readonly principal?: Address;
  readonly rest: readonly string[];
}

const VERBS = Object.keys(SUBJECTS) as SubjectVerb[];
const NAMES_PRINCIPAL = new Set<SubjectVerb>(
  VERBS.filter(
    (verb) =>
      ['principal-request', 'principal-stream', 'to-principal', 'agent-answers'].includes(SUBJECTS[verb].use) ||
      ABOUT_PRINCIPAL.some((about) => about === verb),
  ),
);

/**
 * Reads a subject strictly. Anything that is not spelled exactly as the functions above would have spelled it is `undefined`,
 * and its message is dropped: a wildcard permission lets a literal `*` or `>` through, and this is where it stops.
 */
export const parseSubject = (subject: string): ParsedSubject | undefined => {
  const prefix = `${SUBJECT_ROOT}.`;
  if (!subject.startsWith(prefix)) return undefined;
  const [namespaceToken, ...tokens] = subject.slice(prefix.length).split('.');
  const namespaceId = decodedId(namespaceToken);
  if (namespaceId === undefined) return undefined;
  // A verb of two tokens wins over one that is its first token alone (`feed.audit`, `audit`).
  const two = tokens.slice(0, 2).join('.');
  const verb = VERBS.find((candidate) => candidate === two) ?? VERBS.find((candidate) => candidate === tokens[0]);
  if (verb === undefined) return undefined;
  let rest = tokens.slice(verb.split('.').length);
  let principal: Address | undefined;
  if (NAMES_PRINCIPAL.has(verb)) {
    const kind = ADDRESS_KINDS.find((candidate) => candidate === rest[0]);
    const id = decodedId(rest[1]);
    if (kind === undefined || id === undefined) return undefined;
    principal = addressOf(kind satisfies AddressKind, id);
    rest = rest.slice(2);
  }
  const decoded = rest.map(decodedId);
  if (decoded.includes(undefined)) return undefined;
  return { verb, namespaceId, rest: decoded as string[], ...(principal === undefined ? {} : { principal }) };
};

/** An identifier out of a token: canonical spelling, and an `Id` that needs no trimming. */
const decodedId = (token: string | undefined): string | undefined => {
  if (token === undefined) return undefined;
  const id = decodeToken(token);
  return id.ok && id.value.length <= 256 && id.value === id.value.trim() && id.value !== '' ? id.value : undefined;
};

/** Where an audit record goes: one subject per outcome and type, so that a subscriber can choose by subject alone. */
export const auditSubject = (event: { readonly namespaceId: string; readonly outcome: string; readonly type: string }): string =>
  namespaceSubject('audit', event.namespaceId, event.outcome, ...event.type.split('.'));
