import { type PolicyDocument, PolicyEvent, STOPS_MAX, type StopTarget } from '@sharedos/contracts';
import { describe, it, expect } from 'vitest';
import { type PolicyCommand, policy } from './policy.ts';
import { NOW, alice, at, bob, carol, dave } from './testing/base-world.ts';
import { given } from './testing/given.ts';

const document: PolicyDocument = { language: 'sharedos.rules/1', rules: [{ id: 'no-writes', effect: 'forbid', actions: ['write'] }] };
const other: PolicyDocument = { language: 'sharedos.rules/1', rules: [] };
const bobOnly: StopTarget = { kind: 'agent', agent: bob };
const everybody: StopTarget = { kind: 'namespace' };

const setTo = (what: PolicyDocument, expectedVersion?: number): PolicyCommand => ({ type: 'SetPolicy', document: what, expectedVersion });
const stop = (target: StopTarget, reason = 'it deletes files'): PolicyCommand => ({ type: 'Stop', target, reason, by: alice, at: NOW });
const resume = (target: StopTarget, reason?: string): PolicyCommand => ({ type: 'Resume', target, reason });

const set: PolicyEvent = { type: 'PolicySet', document };
const stopped = (target: StopTarget): PolicyEvent => ({
  type: 'Stopped',
  stop: { target, reason: 'it deletes files', by: alice, at: at('10:00:00.000') },
});
const resumed = (target: StopTarget): PolicyEvent => ({ type: 'Resumed', target });
const stateAfter = (...events: readonly PolicyEvent[]) => events.reduce((state, event) => policy.evolve(state, event), policy.initial);

describe('setting the policy', () => {
  it('replaces the document', () => given(policy, []).when(setTo(document)).thenEvents(set));
  it('changes nothing when it is the document that stands', () => given(policy, [set]).when(setTo(document)).thenNothing());
  it('is of the version it states', () => given(policy, [set]).when(setTo(other, 1)).thenEvents({ type: 'PolicySet', document: other }));
  it.each([0, 2, 7])('is refused when the version it states is not the one that stands: %s', (expected) =>
    given(policy, [set]).when(setTo(other, expected)).thenRefused({ code: 'version_conflict', found: 1 }),
  );
  it('is refused for a version before a stop: a stop changes what is in force', () =>
    given(policy, [set, stopped(bobOnly)])
      .when(setTo(other, 1))
      .thenRefused({ code: 'version_conflict', found: 2 }));
  it('is refused of a version that never was', () =>
    given(policy, []).when(setTo(document, 1)).thenRefused({ code: 'version_conflict', found: 0 }));
  it('ends no stop', () => expect(stateAfter(stopped(bobOnly), set).stops).toHaveLength(1));
});

describe('stopping', () => {
  it('is of an agent or of the namespace', () => {
    given(policy, []).when(stop(bobOnly)).thenEvents(stopped(bobOnly));
    given(policy, [stopped(bobOnly)])
      .when(stop(everybody))
      .thenEvents(stopped(everybody));
  });
  it('changes nothing the second time, whatever the reason then', () =>
    given(policy, [stopped(bobOnly)])
      .when(stop(bobOnly, 'another'))
      .thenNothing());
  it('is another stop for another agent', () =>
    given(policy, [stopped(bobOnly)])
      .when(stop({ kind: 'agent', agent: dave }))
      .thenEvents(stopped({ kind: 'agent', agent: dave })));
  it('is refused when there are too many: nobody could read them', () =>
    given(
      policy,
      Array.from({ length: STOPS_MAX }, (_, n) => stopped({ kind: 'agent', agent: { kind: 'agent', agentId: `a${n}` } })),
    )
      .when(stop(bobOnly))
      .thenRefused({ code: 'too_many_stops' }));
});

describe('resuming', () => {
  it('ends the stop', () =>
    given(policy, [stopped(bobOnly)])
      .when(resume(bobOnly))
      .thenEvents(resumed(bobOnly)));
  it('keeps the reason', () =>
    given(policy, [stopped(bobOnly)])
      .when(resume(bobOnly, 'mended'))
      .thenEvents({ type: 'Resumed', target: bobOnly, reason: 'mended' }));
  it('is refused of what is not stopped: the name may be a wrong one', () => {
    given(policy, []).when(resume(bobOnly)).thenRefused({ code: 'not_stopped' });
    given(policy, [stopped(everybody)])
      .when(resume(bobOnly))
      .thenRefused({ code: 'not_stopped' });
    given(policy, [stopped(bobOnly)])
      .when(resume(everybody))
      .thenRefused({ code: 'not_stopped' });
    given(policy, [stopped(bobOnly), resumed(bobOnly)])
      .when(resume(bobOnly))
      .thenRefused({ code: 'not_stopped' });
  });
});

describe('the policy of a namespace', () => {
  it('counts its changes', () => expect(stateAfter(set, stopped(bobOnly), resumed(bobOnly))).toEqual({ document, stops: [], version: 3 }));
  it('makes events that meet their contract', () => {
    for (const event of [set, stopped(everybody), { ...resumed(bobOnly), reason: 'mended' }])
      expect(PolicyEvent.parse(event)).toEqual(event);
    expect(PolicyEvent.safeParse(stopped({ kind: 'agent', agent: carol as never })).success).toBe(false);
  });
});
