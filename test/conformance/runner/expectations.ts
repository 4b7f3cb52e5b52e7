import { type AuditEvent, type AuthorizationDecision, type ResourceReach, canonicalJson, sameJson } from '@sharedos/contracts';
import { publicDecision } from '@sharedos/kernel';
import { type Bag, UnknownToRunner, onlyKnown } from './case.ts';
import type { Observed } from './observed.ts';
import { OUR_CODES } from './reason-codes.ts';

/** What is wrong with one step: the field, what was wanted and what came. */
export interface Violation {
  readonly step: string;
  readonly field: string;
  readonly wanted: unknown;
  readonly came: unknown;
}

interface Question {
  readonly want: unknown;
  readonly found: Observed;
  readonly counter: (grantId: string) => string;
  readonly other: (id: unknown) => Observed;
  /** Told of an answer that differs from another implementation's where no specification fixes it. */
  readonly differs: (field: string, want: unknown, came: unknown) => void;
}

type Check = (question: Question) => boolean;

const field =
  (name: string): Check =>
  ({ want, found }) =>
    sameValue(found.received[name], want);
const matching =
  (name: string): Check =>
  ({ want, found }) =>
    matches(want, found.received[name]);
const counted =
  (name: string): Check =>
  ({ want, found }) =>
    found.counts[name] === want;

const names = (found: Observed): readonly string[] => found.received['tools'] as readonly string[];

/** Every field an expectation may have. A field that is not here fails its case: a check that is not made must not pass. */
const CHECKS: Readonly<Record<string, Check>> = {
  step: () => true,
  note: () => true,
  notes: () => true,
  // Decisions
  allowed: field('allowed'),
  reasonCode: field('reasonCode'),
  grantId: field('matchedGrantId'),
  grantIdIn: ({ want, found }) => (want as unknown[]).includes(found.received['matchedGrantId']),
  requiredAuthority: ({ want, found }) => {
    const described = found.received['requiredAuthority'];
    if (want === 'absent') return described === undefined;
    return want === 'present' ? described !== undefined : matches(want, described);
  },
  metadata: matching('metadata'),
  metadataLacks: ({ want, found }) => (want as string[]).every((key) => !(key in ((found.received['metadata'] as Bag | undefined) ?? {}))),
  sameRequestIdAs: ({ want, found, other }) => found.requestId !== undefined && found.requestId === other(want).requestId,
  differentRequestIdFrom: ({ want, found, other }) =>
    found.requestId !== undefined && other(want).requestId !== undefined && found.requestId !== other(want).requestId,
  sameAuthorityAs: ({ want, found, other }) => found.hash !== undefined && found.hash === other(want).hash,
  differentAuthorityFrom: ({ want, found, other }) =>
    found.hash !== undefined && other(want).hash !== undefined && found.hash !== other(want).hash,
  // Results
  status: field('status'),
  code: field('code'),
  codeNot: ({ want, found }) => found.received['code'] !== want,
  referenceCode: (question) =>
    reference(question, 'referenceCode', question.found.received['code'] ?? question.found.received['reasonCode']),
  referenceCause: (question) => {
    const causes = question.found.audit.map(({ metadata }) => metadata?.['cause']).filter((cause) => cause !== undefined);
    return reference(question, 'referenceCause', causes.includes(question.want as string) ? question.want : causes[0]);
  },
  output: ({ want, found }) => sameValue(found.received['output'], want),
  throws: ({ want, found }) => (found.received['thrown'] !== undefined) === want,
  sameAnswerAs: ({ want, found, other }) => sameJson(anonymous(found.received), anonymous(other(want).received)),
  textLacks: ({ want, found }) => (want as string[]).every((text) => !received(found).includes(text)),
  outcomes: ({ want, found }) => sameValue(found.received['outcomes'], want),
  // Catalogue
  tools: ({ want, found }) => sameValue([...names(found)].sort(), [...(want as string[])].sort()),
  toolsInOrder: ({ want, found }) => sameValue(names(found), want),
  toolsInclude: ({ want, found }) => (want as string[]).every((name) => names(found).includes(name)),
  toolsExclude: ({ want, found }) => !(want as string[]).some((name) => names(found).includes(name)),
  namespaces: ({ want, found }) => {
    const listed = found.received['namespaces'] as readonly (Bag & { readonly namespace: string })[];
    return Object.entries(want as Bag).every(([name, facts]) =>
      matches(
        facts,
        listed.find(({ namespace }) => namespace === name),
      ),
    );
  },
  sameCatalogAs: ({ want, found, other }) =>
    found.received['catalogHash'] !== undefined && found.received['catalogHash'] === other(want).received['catalogHash'],
  differentCatalogFrom: ({ want, found, other }) =>
    found.received['catalogHash'] !== undefined &&
    other(want).received['catalogHash'] !== undefined &&
    found.received['catalogHash'] !== other(want).received['catalogHash'],
  // Counts
  usage: ({ want, found, counter }) =>
    Object.entries(want as Record<string, number>).every(([id, count]) => (found.usage.get(counter(id)) ?? 0) === count),
  handlerCalls: ({ want, found }) =>
    Object.entries(want as Record<string, number>).every(([name, count]) => ((found.counts['handlerCalls'] as Bag)[name] ?? 0) === count),
  deliveries: counted('deliveries'),
  grantLoads: counted('grantLoads'),
  policyLoads: counted('policyLoads'),
  ceilingCalls: counted('ceilingCalls'),
  catalogResolutions: counted('catalogResolutions'),
  // Delegation, authority
  ok: field('ok'),
  reason: field('reason'),
  grant: matching('grant'),
  atGrant: field('atGrant'),
  chain: ({ want, found }) => sameValue(found.received['chain'], want),
  detail: matching('detail'),
  // Reach and cards
  reach: ({ want, found }) => sameReach(want, found.received['reach']),
  sameReachAs: ({ want, found, other }) => sameValue(found.received['reach'], other(want).received['reach']),
  card: ({ want, found }) => {
    const { reach, ...rest } = want as Bag;
    const card = found.received['card'] as Bag | undefined;
    return matches(rest, card) && (reach === undefined || sameReach(reach, card?.['reach']));
  },
  cardLacks: ({ want, found }) => {
    const card = found.received['card'] as Bag | undefined;
    return card !== undefined && (want as string[]).every((key) => !(key in card));
  },
  servableViews: ({ want, found }) => sameValue([...(found.received['servableViews'] as string[])].sort(), [...(want as string[])].sort()),
  // Escalation, requests, pure functions, turns
  escalation: matching('escalation'),
  request: ({ want, found }) => (want === null ? found.received['request'] === null : matches(want, found.received['request'])),
  value: ({ want, found }) => sameValue(found.received['value'], want),
  started: field('started'),
  endedBy: field('endedBy'),
  calls: (question) => {
    const calls = question.found.received['calls'] as readonly Bag[] | undefined;
    const wanted = question.want as readonly Bag[];
    if (calls === undefined || calls.length !== wanted.length) return false;
    return wanted.every(({ referenceCode, ...call }, index) => {
      const came = calls[index] as Bag;
      return (
        matches(call, came) &&
        (referenceCode === undefined || reference({ ...question, want: referenceCode }, 'referenceCode', came['code']))
      );
    });
  },
  // Audit
  audit: ({ want, found: { audit } }) => {
    onlyKnown('an expectation of records', want as object, ['has', 'lacks', 'counts']);
    const { has = [], lacks = [], counts = {} } = want as { has?: Bag[]; lacks?: Bag[]; counts?: Record<string, number> };
    return (
      has.every((pattern) => audit.some((event) => recordMatches(pattern, event))) &&
      !lacks.some((pattern) => audit.some((event) => recordMatches(pattern, event))) &&
      Object.entries(counts).every(([type, count]) => audit.filter((event) => event.type === type).length === count)
    );
  },
  auditTextLacks: ({ want, found }) => (want as string[]).every((text) => !JSON.stringify(found.audit).includes(text)),
  auditIdsDifferFrom: ({ want, found, other }) => {
    const ids = new Set(other(want).audit.map(({ id }) => id));
    return found.audit.length > 0 && !found.audit.some(({ id }) => ids.has(id));
  },
};

/** The codes that others use where the documents give none. Ours are fixed, so those are graded; others are only told of. */
const reference = ({ want, differs }: Question, name: string, came: unknown): boolean => {
  if (came === want) return true;
  if (OUR_CODES.has(want as string)) return false;
  differs(name, want, came);
  return true;
};

/** A wanted object matches if each key it lists is there and matches; a wanted list must have the same length. */
const matches = (wanted: unknown, found: unknown): boolean => {
  if (Array.isArray(wanted))
    return Array.isArray(found) && wanted.length === found.length && wanted.every((item, index) => matches(item, found[index]));
  if (typeof wanted !== 'object' || wanted === null) return wanted === found;
  return typeof found === 'object' && found !== null && Object.entries(wanted).every(([key, value]) => matches(value, (found as Bag)[key]));
};

const sameValue = (came: unknown, want: unknown): boolean =>
  came === undefined || want === undefined ? came === want : canonicalJson(came) === canonicalJson(want);

const sortedReach = (reach: unknown): unknown =>
  (reach as readonly ResourceReach[])
    .map(({ namespace, path, scope, actions }) => JSON.stringify([namespace, path, scope, [...new Set(actions)].sort()]))
    .sort();
const sameReach = (want: unknown, came: unknown): boolean => Array.isArray(came) && sameValue(sortedReach(came), sortedReach(want));

const OWN_FIELDS = new Set(['type', 'outcome', 'reason', 'grantId', 'operationId', 'tool']);
const STATED_FIELDS = new Set(['source', 'cause', 'consumed', 'failClosed', 'grantsResolved', 'rejectedGrants', 'missingDependency']);

const recordMatches = (pattern: Bag, event: AuditEvent): boolean =>
  Object.entries(pattern).every(([key, wanted]) => {
    if (OWN_FIELDS.has(key)) return (event as unknown as Bag)[key] === wanted;
    if (STATED_FIELDS.has(key)) return matches(wanted, event.metadata?.[key]);
    if (key !== 'authorityCode') throw new UnknownToRunner(`a pattern of records asks for ${key}`);
    const authority = event.metadata?.['authority'];
    return (typeof authority === 'object' && authority !== null ? (authority as Bag)['code'] : authority) === wanted;
  });

/** What leaves the services of a decision is less than what a host sees of it. */
const received = ({ received: given }: Observed): string =>
  JSON.stringify('allowed' in given && 'reasonCode' in given ? publicDecision(given as unknown as AuthorizationDecision) : given);

const SUPPLIED = new Set([
  'callId',
  'tool',
  'operationId',
  'messageId',
  'completedAt',
  'timestamp',
  'id',
  'requestedAt',
  'path',
  'subject',
]);

/** An answer without the identifiers and names that its caller supplied. */
const anonymous = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(anonymous);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => !SUPPLIED.has(key) && member !== undefined)
      .map(([key, member]) => [key, anonymous(member)]),
  );
};

/** Judges one expectation, field by field. */
export const violations = (
  wanted: Bag,
  step: string,
  seen: ReadonlyMap<string, Observed>,
  counter: (grantId: string) => string,
  differs: (field: string, want: unknown, came: unknown) => void,
): readonly Violation[] => {
  const found = seen.get(step);
  if (found === undefined) throw new UnknownToRunner(`step ${step} was not made`);
  const other = (id: unknown): Observed => {
    const observed = seen.get(id as string);
    if (observed === undefined) throw new UnknownToRunner(`step ${String(id)} was not made`);
    return observed;
  };
  const wrong: Violation[] = [];
  // A step that threw has no answer; unless that was wanted, it is the first thing to say.
  if (found.received['thrown'] !== undefined && !('throws' in wanted))
    return [{ step, field: 'throws', wanted: false, came: found.received['thrown'] }];
  for (const [name, want] of Object.entries(wanted)) {
    const check = CHECKS[name];
    if (check === undefined) throw new UnknownToRunner(`an expectation asks for ${name}`);
    if (!check({ want, found, counter, other, differs })) wrong.push({ step, field: name, wanted: want, came: cameOf(name, found) });
  }
  return wrong;
};

const cameOf = (name: string, { received: given, audit, counts, usage }: Observed): unknown => {
  if (name.startsWith('audit')) return audit.map(({ type, outcome, reason, metadata }) => ({ type, outcome, reason, metadata }));
  if (name === 'usage') return Object.fromEntries(usage);
  return counts[name] ?? given;
};
