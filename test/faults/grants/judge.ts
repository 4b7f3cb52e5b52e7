import { type Revision, positionOf } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import type { Finding } from '../finding.ts';
import { type LogFacts, standsAt } from './log-facts.ts';
import type { Change, Opened, Played } from './rounds.ts';

/** Judges what was acknowledged and what was decided by the log alone: who answered, and what it believed, counts for nothing. */
export const judge = (facts: LogFacts, storeId: string, { changes, opened }: Pick<Played, 'changes' | 'opened'>): readonly Finding[] => {
  const placeOf = (revision: Revision): Position => positionOf(revision, storeId) ?? Number.NaN;
  return [
    { rule: 'no turn uses a grant whose revocation was acknowledged before it was opened', contradictions: stale(opened) },
    { rule: 'every turn is opened at or after all that was acknowledged before', contradictions: early(changes, opened, placeOf) },
    { rule: 'every decision is what the log says at the revision of its turn', contradictions: wrong(facts, opened, placeOf) },
    { rule: 'everything that was acknowledged is in the log', contradictions: missing(facts, changes, placeOf) },
  ];
};

type PlaceOf = (revision: Revision) => Position;

const nameOf = ({ grantId, after, revision }: Opened): string => `${grantId} ${after}, opened at ${revision}`;

const stale = (opened: readonly Opened[]): string[] =>
  opened.filter(({ after, status }) => after === 'revoked' && status === 'allowed').map(nameOf);

const early = (changes: readonly Change[], opened: readonly Opened[], placeOf: PlaceOf): string[] => {
  const byTime = changes.toSorted((a, b) => a.acknowledgedAt - b.acknowledgedAt);
  const contradictions: string[] = [];
  let next = 0;
  let floor: Position = 0;
  for (const turn of opened.toSorted((a, b) => a.askedAt - b.askedAt)) {
    for (; (byTime[next]?.acknowledgedAt ?? Infinity) < turn.askedAt; next += 1)
      floor = Math.max(floor, placeOf((byTime[next] as Change).revision));
    // Not the other way round: a place that cannot be compared is no place at all.
    if (!(placeOf(turn.revision) >= floor)) contradictions.push(`${nameOf(turn)}, behind ${floor}`);
  }
  return contradictions;
};

const wrong = (facts: LogFacts, opened: readonly Opened[], placeOf: PlaceOf): string[] => {
  const held = new Map<string, string[]>();
  for (const [id, { holder }] of facts) held.set(holder, [...(held.get(holder) ?? []), id]);
  return opened.flatMap((turn) => {
    const position = placeOf(turn.revision);
    const standing = (held.get(turn.holder) ?? []).filter((id) => standsAt(facts, id, position));
    const { status, code, matchedGrantId } = turn;
    const isRight =
      standing.length > 0
        ? status === 'allowed' && standing.includes(matchedGrantId ?? '')
        : status === 'denied' && code === 'no_matching_grant';
    return isRight ? [] : [`${nameOf(turn)}: ${status} ${code} by ${matchedGrantId}, and the log has ${standing.join(' ') || 'none'}`];
  });
};

const missing = (facts: LogFacts, changes: readonly Change[], placeOf: PlaceOf): string[] =>
  changes.flatMap(({ grantId, kind, revision }) => {
    const fact = facts.get(grantId);
    const place = kind === 'issued' ? fact?.issuedAt : fact?.revokedAt;
    return place !== undefined && place <= placeOf(revision) ? [] : [`${grantId} ${kind} at ${revision}, and in the log at ${place}`];
  });
