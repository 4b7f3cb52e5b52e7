import type { AccessContext, Address, CapabilityGrant, CapabilityRequirement } from '@sharedos/contracts';

// The contracts' rules that a decision stands on, read by hand: closed objects, trimmed identifiers, path segments, timestamps.

const STAMP = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;
const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;

/** Milliseconds since 1970, counted and not parsed; digits past milliseconds are dropped. `NaN` for what is no timestamp. */
export const clock = (text: string): number => {
  const known = counted.get(text) ?? countedFrom(text);
  counted.set(text, known);
  return known;
};

/** Worlds name a few instants over and over. */
const counted = new Map<string, number>();

const countedFrom = (text: string): number => {
  const parts = STAMP.exec(text);
  if (parts === null) return NaN;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [number, number, number, number, number, number];
  const length = (MONTHS[month - 1] ?? 0) + (month === 2 && isLeap(year) ? 1 : 0);
  if (day < 1 || day > length || hour > 23 || minute > 59 || second > 59) return NaN;
  const [offsetHour, offsetMinute] = [Number(parts[9] ?? 0), Number(parts[10] ?? 0)];
  if (offsetHour > 23 || offsetMinute > 59) return NaN;
  let days = day - 1;
  for (let each = 1970; each < year; each += 1) days += isLeap(each) ? 366 : 365;
  for (let each = 1; each < month; each += 1) days += (MONTHS[each - 1] as number) + (each === 2 && isLeap(year) ? 1 : 0);
  const offset = (parts[8] === '-' ? -1 : 1) * (offsetHour * 60 + offsetMinute);
  const minutes = days * 1440 + hour * 60 + minute - offset;
  return minutes * 60_000 + second * 1000 + Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3));
};

const ID_FIELD: Readonly<Record<string, string>> = { human: 'userId', agent: 'agentId', group: 'conversationId', service: 'serviceId' };

/** A principal as text: two are equal when kind and id are. */
export const addressText = (address: Address): string =>
  `${address.kind} ${String((address as unknown as Record<string, unknown>)[ID_FIELD[address.kind] as string])}`;

/** What does not meet its contract. It never leaves this file. */
class Unreadable extends Error {}
const refuse = (why: string): never => {
  throw new Unreadable(why);
};
const attempt = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (problem) {
    if (problem instanceof Unreadable) return undefined;
    throw problem;
  }
};

type Members = Readonly<Record<string, unknown>>;

const closed = (value: unknown, required: readonly string[], optional: readonly string[] = []): Members => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuse('not an object');
  const members = value as Members;
  for (const key of required) if (!Object.hasOwn(members, key)) refuse(`without ${key}`);
  for (const [key, member] of Object.entries(members)) {
    if (!required.includes(key) && !optional.includes(key)) refuse(`with ${key}`);
    if (member === undefined) refuse(`${key} is absent and named`);
  }
  return members;
};
const list = <T>(value: unknown, min: number, max: number, read: (entry: unknown) => T): T[] =>
  Array.isArray(value) && value.length >= min && value.length <= max ? value.map(read) : refuse('no such list');
const word = (value: unknown, max: number): string => {
  const trimmed = typeof value === 'string' ? value.trim() : '';
  return trimmed.length >= 1 && trimmed.length <= max ? trimmed : refuse('no such text');
};
const id = (value: unknown): string => word(value, 256);
const purpose = (value: unknown): string => word(value, 512);
const action = (value: unknown): string => word(value, 128);
const stamp = (value: unknown): string =>
  typeof value === 'string' && value.length <= 64 && !Number.isNaN(clock(value)) ? value : refuse('no timestamp');
const count = (value: unknown, min: number): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= min ? value : refuse('no count');
const segment = (value: unknown): string => {
  if (typeof value !== 'string' || value.length < 1 || value.length > 256 || value.trim() !== value) return refuse('no segment');
  if (value === '.' || value === '..' || /[/\\]/.test(value)) return refuse('no segment');
  for (let at = 0; at < value.length; at += 1) if (value.charCodeAt(at) < 0x20 || value.charCodeAt(at) === 0x7f) refuse('no segment');
  return value;
};
const address = (value: unknown): Address => {
  const kind = typeof value === 'object' && value !== null ? String((value as Members)['kind']) : '';
  const field = Object.hasOwn(ID_FIELD, kind) ? (ID_FIELD[kind] as string) : refuse('no such kind');
  const members = closed(value, ['kind', field]);
  return { kind, [field]: id(members[field]) } as unknown as Address;
};
/** Optional members that are there, each read; those that are not stay away. */
const optional = (members: Members, readers: Readonly<Record<string, (value: unknown) => unknown>>): Members =>
  Object.fromEntries(Object.entries(readers).flatMap(([key, read]) => (Object.hasOwn(members, key) ? [[key, read(members[key])]] : [])));

const resource = (value: unknown): CapabilityRequirement['resource'] => {
  const members = closed(value, ['namespace', 'path'], ['owner']);
  const read = { namespace: id(members['namespace']), path: list(members['path'], 0, 64, segment) };
  return { ...read, ...optional(members, { owner: address }) };
};
const capability = (value: unknown): CapabilityGrant['capabilities'][number] => {
  const members = closed(value, ['resource', 'actions', 'scope']);
  const scope = members['scope'];
  if (scope !== 'exact' && scope !== 'descendants') return refuse('no scope');
  return { resource: resource(members['resource']), actions: list(members['actions'], 1, 64, action), scope };
};
const constraints = (value: unknown): CapabilityGrant['constraints'] => {
  const members = closed(value, [], ['purposes', 'notBefore', 'expiresAt', 'maxUses', 'delegationDepth']);
  const read: CapabilityGrant['constraints'] = optional(members, {
    purposes: (purposes) => list(purposes, 1, 64, purpose),
    notBefore: stamp,
    expiresAt: stamp,
    maxUses: (uses) => count(uses, 1),
    delegationDepth: (depth) => count(depth, 0),
  });
  if (read.notBefore !== undefined && read.expiresAt !== undefined && clock(read.notBefore) > clock(read.expiresAt)) refuse('never open');
  return read;
};

/** A grant, identifiers trimmed, or `undefined`. Metadata is not judged: no world here has any. */
export const readGrant = (value: unknown): CapabilityGrant | undefined =>
  attempt(() => {
    const required = ['id', 'namespaceId', 'subject', 'issuer', 'capabilities', 'constraints', 'issuedAt'];
    const members = closed(value, required, ['revokedAt', 'parentGrantId']);
    const grant: CapabilityGrant = {
      id: id(members['id']),
      namespaceId: id(members['namespaceId']),
      subject: address(members['subject']),
      issuer: address(members['issuer']),
      capabilities: list(members['capabilities'], 1, 64, capability),
      constraints: constraints(members['constraints']),
      issuedAt: stamp(members['issuedAt']),
      ...optional(members, { revokedAt: stamp, parentGrantId: id }),
    };
    return grant.parentGrantId === grant.id ? refuse('its own parent') : grant;
  });

export const readRequirement = (value: unknown): CapabilityRequirement | undefined =>
  attempt(() => {
    const members = closed(value, ['resource', 'action']);
    return { resource: resource(members['resource']), action: action(members['action']) };
  });

export const readContext = (value: AccessContext): AccessContext | undefined =>
  attempt(() => {
    const names = ['namespaceId', 'actor', 'authority', 'owner', 'purpose', 'traceId', 'enabledToolNamespaces', 'now'];
    const members = closed(value, names);
    const enabledToolNamespaces = list(members['enabledToolNamespaces'], 0, 256, id);
    if (new Set(enabledToolNamespaces).size !== enabledToolNamespaces.length) refuse('a tool namespace twice');
    return {
      namespaceId: id(members['namespaceId']),
      actor: address(members['actor']),
      authority: address(members['authority']),
      owner: address(members['owner']),
      purpose: purpose(members['purpose']),
      traceId: id(members['traceId']),
      enabledToolNamespaces,
      now: stamp(members['now']),
    };
  });
