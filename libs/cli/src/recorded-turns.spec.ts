import type { AuditEvent } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { recordedTurns, recordedTurnsText } from './recorded-turns.ts';

const alice = { kind: 'human', userId: 'alice' } as const;
const NOON = Date.parse('2026-01-01T12:00:00.000Z');
let ids = 0;
const record = (order: number | undefined, ms: number, over: Partial<AuditEvent>): AuditEvent => ({
  version: '1',
  id: `record-${(ids += 1)}`,
  type: 'tool.invoked',
  outcome: 'succeeded',
  at: new Date(NOON + ms).toISOString(),
  traceId: 'trace-1',
  namespaceId: 'w1',
  actor: { kind: 'agent', agentId: 'scout' },
  authority: alice,
  owner: alice,
  purpose: 'p1',
  ...over,
  metadata: { turnId: 'turn-1', ...(order === undefined ? {} : { order }), ...over.metadata },
});
const notes = { namespace: 'files', path: ['notes', 'plan.md'], owner: alice };
const decision = (order: number | undefined, ms: number, over: Partial<AuditEvent>): AuditEvent =>
  record(order, ms, { type: 'authorization.checked', outcome: 'allowed', action: 'read', ...over });

const opened = record(undefined, 0, { type: 'authority.resolved' });
const admitted = decision(0, 2, { grantId: 'run-scout' });
const allowed = decision(2, 10, { operationId: 'call-1', grantId: 'notes', resource: notes });
const done = record(3, 25, { operationId: 'call-1', tool: 'files.read', resource: notes });
const denied = decision(4, 30, { operationId: 'call-2', outcome: 'denied', reason: 'no_matching_grant', resource: notes });
const refused = record(5, 31, { operationId: 'call-2', tool: 'files.read', outcome: 'denied', reason: 'no_matching_grant' });
const ended = record(6, 40, { type: 'turn.ended', operationId: 'execution-1' });

describe('a turn as its records tell it', () => {
  it('is its admission, and each call with its decision, grant and outcome, in its own order', () => {
    const [turn] = recordedTurns([ended, done, refused, allowed, denied, opened, admitted]);
    expect(turn).toEqual({
      turnId: 'turn-1',
      steps: [
        { at: 0, what: 'authority.resolved', effect: 'succeeded' },
        { at: 2, what: 'admission', decision: 'allowed', grant: 'run-scout' },
        { at: 10, what: 'files.read', over: 'files:notes/plan.md', decision: 'allowed', grant: 'notes', effect: 'succeeded' },
        {
          at: 30,
          what: 'files.read',
          over: 'files:notes/plan.md',
          decision: 'denied (no_matching_grant)',
          effect: 'denied (no_matching_grant)',
        },
        { at: 40, what: 'turn.ended', effect: 'succeeded' },
      ],
    });
  });

  it('says of a call that was allowed, and of which nothing came, that it was not run', () => {
    const [turn] = recordedTurns([opened, allowed]);
    expect(turn?.steps.at(-1)).toEqual({
      at: 10,
      what: 'read',
      over: 'files:notes/plan.md',
      decision: 'allowed',
      grant: 'notes',
      effect: 'decided, not run',
    });
  });

  it('is kept apart from another of the same trace, and from what belongs to none', () => {
    const another = record(0, 5, { metadata: { turnId: 'turn-2' } });
    const { turnId: _, ...without } = record(0, 7, {}).metadata ?? {};
    const turns = recordedTurns([opened, another, { ...record(0, 7, {}), metadata: without }]);
    expect(turns.map(({ turnId, steps }) => [turnId, steps.length])).toEqual([
      ['turn-1', 1],
      ['turn-2', 1],
    ]);
  });

  it('is a table for people, without what a terminal would obey', () => {
    const text = recordedTurnsText(recordedTurns([allowed, record(3, 25, { operationId: 'call-1', tool: '\u001b[31mfiles.read' })]));
    expect(text).toMatch(/^turn turn-1\nAT +WHAT .*\n\+0 ms +\\u001b\[31mfiles\.read +files:notes\/plan\.md +allowed +notes +succeeded\n$/);
  });
});
