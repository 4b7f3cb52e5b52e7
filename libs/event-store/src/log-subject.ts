import { namespaceSubject, parseSubject } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { StreamCategory, StreamId } from './event-store.ts';

const CATEGORIES: ReadonlySet<string> = new Set<StreamCategory>([
  'grant',
  'policy',
  'settings',
  'toolsettings',
  'agent',
  'escalation',
  'mcp',
]);

/** What a subject of the log is: a stream's, a barrier's (holds no event), or none that we know. */
export type LogPlace = { readonly kind: 'stream'; readonly stream: StreamId } | { readonly kind: 'barrier' } | { readonly kind: 'unknown' };

/** The subject of a stream, `sharedos.v1.<ns>.log.<category>.<id>`: also its one name in every adapter. */
export const logSubject = (stream: StreamId): string => {
  const subject = namespaceSubject('log', stream.namespaceId, stream.category, stream.id);
  // Readers park what they cannot read back, so a name that does not survive the way must never be written.
  invariant(logPlace(subject).kind === 'stream', 'a stream is named by a known category and by parsed identifiers');
  return subject;
};

export const logPlace = (natsSubject: string): LogPlace => {
  const parsed = parseSubject(natsSubject);
  if (parsed?.verb !== 'log') return { kind: 'unknown' };
  const [category, id, ...more] = parsed.rest;
  if (category === 'barrier' && id === undefined) return { kind: 'barrier' };
  if (category === undefined || id === undefined || more.length > 0 || !CATEGORIES.has(category)) return { kind: 'unknown' };
  return { kind: 'stream', stream: { category: category as StreamCategory, namespaceId: parsed.namespaceId, id } };
};
