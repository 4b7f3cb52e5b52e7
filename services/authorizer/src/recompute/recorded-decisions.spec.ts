import { readFileSync } from 'node:fs';
import type { AuditEvent, LogEvent } from '@sharedos/contracts';
import { type StreamId, logSubject, memoryEventStore } from '@sharedos/event-store';
import { describe, expect, it } from 'vitest';
import { authorizerWorld } from '../authorizer.fixture.ts';
import { recomputed } from './lived-through.fixture.ts';

// Recorded by this release, and never to be changed: the log of a namespace, then what was decided in it. What a later release computes
// from the first must be the second, so a rule that it judges otherwise by shows here. A later release adds files.
type Line = { readonly stream: StreamId; readonly events: readonly LogEvent[] } | { readonly decision: AuditEvent };
const LINES = readFileSync(new URL('../recorded/decisions.v1.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Line);
const DECISIONS = LINES.flatMap((line) => ('decision' in line ? [line.decision] : []));

/** A replica over the log as it was recorded, or as somebody changed it. */
const answersOver = async (change: (event: LogEvent) => LogEvent = (event) => event) => {
  const store = memoryEventStore({ storeId: 'log' });
  for (const line of LINES) {
    if ('stream' in line) store.appendRaw(logSubject(line.stream), Buffer.from(JSON.stringify(line.events.map(change))));
  }
  const world = await authorizerWorld({ store, deadlineMs: 5_000 });
  const answers = await recomputed(world, DECISIONS);
  await world.close();
  return answers;
};

describe('decisions that this release recorded', () => {
  it('come out the same in every later one, computed from their log alone', async () => {
    expect(new Set(DECISIONS.map(({ reason, outcome }) => reason ?? outcome))).toEqual(
      new Set(['allowed', 'no_matching_grant', 'host_policy_denied', 'delegation_chain_invalid', 'grant_exhausted']),
    );
    const answers = await answersOver();
    expect(answers).toHaveLength(162);
    expect(answers.filter(({ status }) => status !== 'same')).toEqual([]);
  });

  it('tell that the log they were decided by was another', async () => {
    const answers = await answersOver((event) =>
      event.type === 'GrantIssued' ? { ...event, data: JSON.parse(JSON.stringify(event.data).replaceAll('"read"', '"list"')) } : event,
    );
    expect(answers.some(({ status }) => status === 'differs')).toBe(true);
  });
});
