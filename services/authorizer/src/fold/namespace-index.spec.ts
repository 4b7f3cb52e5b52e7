import { readFileSync } from 'node:fs';
import {
  AgentEvent,
  type AgentTerms,
  EscalationEvent,
  type JsonObj,
  type LogEvent,
  type PolicyDocument,
  PolicyEvent,
  SETTINGS_DEFAULT,
  SettingsEvent,
  ToolSettingsEvent,
} from '@sharedos/contracts';
import type { Recorded, StreamId } from '@sharedos/event-store';
import { describe, expect, it } from 'vitest';
import { NAMESPACE, NOON, alice, bob, carol } from '../authorizer.fixture.ts';
import { namespaceStream } from './namespace-events.ts';
import { NamespaceIndex } from './namespace-index.ts';

const document = (id: string): PolicyDocument => ({ language: 'sharedos.rules/1', rules: [{ id, effect: 'forbid' }] });
const terms: AgentTerms = { agentId: 'bob', authority: alice, owner: carol };

const recorded = (stream: StreamId, { type, ...data }: { type: string } & Record<string, unknown>, position: number): Recorded => {
  const event: LogEvent = {
    eventId: '0190a3f0-7b1c-5d2e-8f00-0123456789ab',
    type,
    schemaVersion: 1,
    at: NOON,
    principal: alice,
    correlationId: 'c',
    data: data as JsonObj,
  };
  return { stream, event, position };
};
const policySet = (id: string, position: number, namespaceId = NAMESPACE) =>
  recorded(namespaceStream('policy', namespaceId), { type: 'PolicySet', document: document(id) }, position);
const agentStream: StreamId = { category: 'agent', namespaceId: NAMESPACE, id: 'bob' };

const HISTORY: readonly Recorded[] = [
  policySet('first', 2),
  recorded(namespaceStream('settings', NAMESPACE), { type: 'SettingsSet', settings: { ...SETTINGS_DEFAULT, liveRevocation: true } }, 4),
  policySet('second', 6),
  recorded(agentStream, { type: 'AgentRegistered', terms, consents: [alice], registeredAt: NOON }, 7),
  recorded(namespaceStream('toolsettings', NAMESPACE), { type: 'ToolNamespacesSet', enabled: ['files'] }, 8),
  recorded(agentStream, { type: 'AgentConsented', by: carol, consentedAt: NOON }, 9),
  recorded(
    { category: 'escalation', namespaceId: NAMESPACE, id: 'e' },
    {
      type: 'EscalationOpened',
      question: {
        id: 'e',
        requester: bob,
        owner: alice,
        authority: alice,
        reviewer: alice,
        purpose: 'p1',
        reason: 'r',
        traceId: 't',
        requestedAt: NOON,
      },
    },
    10,
  ),
];
const folded = (history: readonly Recorded[] = HISTORY): NamespaceIndex => {
  const index = new NamespaceIndex();
  for (const event of history) expect(index.apply(event)).toBeUndefined();
  return index;
};
const ruleAt = (index: NamespaceIndex, position: number) => {
  const { document: found } = index.policyAt(NAMESPACE, position);
  return 'rules' in found ? found.rules.map(({ id }) => id) : found;
};
/** All that is to be known at a position, to compare two indexes by. */
const everythingAt = (index: NamespaceIndex, position: number) => [
  index.policyAt(NAMESPACE, position),
  index.settingsAt(NAMESPACE, position),
  index.toolSelectionAt(NAMESPACE, position),
  index.agentAt(NAMESPACE, 'bob', position),
  index.escalationAt(NAMESPACE, 'e', position),
];

describe('what a namespace was at a revision', () => {
  it('is each thing as the events up to there left it', () => {
    const index = folded();
    expect([1, 2, 5, 6, 99].map((position) => ruleAt(index, position))).toEqual([[], ['first'], ['first'], ['second'], ['second']]);
    expect([3, 4].map((position) => index.settingsAt(NAMESPACE, position).settings.liveRevocation)).toEqual([false, true]);
    expect([6, 7, 8, 9].map((position) => index.agentAt(NAMESPACE, 'bob', position)?.status)).toEqual([
      undefined,
      'proposed',
      'proposed',
      'active',
    ]);
    expect([7, 8].map((position) => index.toolSelectionAt(NAMESPACE, position).enabled)).toEqual([undefined, ['files']]);
    expect([9, 10].map((position) => index.escalationAt(NAMESPACE, 'e', position).status)).toEqual(['absent', 'open']);
  });

  it('is that namespace alone', () => {
    const index = folded();
    expect(everythingAt(index, 99)).not.toEqual(everythingAt(folded([]), 99));
    expect(index.policyAt('w2', 99)).toEqual(new NamespaceIndex().policyAt('w2', 99));
    expect(index.agentAt(NAMESPACE, 'Bob', 99)).toBeUndefined();
  });

  it('is the whole of what one append wrote', () => {
    const index = folded([policySet('first', 2), policySet('second', 2)]);
    expect(ruleAt(index, 2)).toEqual(['second']);
    expect(index.policyAt(NAMESPACE, 2).version).toBe(2);
    expect(index.policyAt(NAMESPACE, 1).version).toBe(0);
  });

  it.each([2, 6, 9, 50])('is the same above position %s when what is below was forgotten', (below) => {
    const [index, whole] = [folded(), folded()];
    index.forget(below);
    for (let position = below; position < 12; position += 1) expect(everythingAt(index, position)).toEqual(everythingAt(whole, position));
  });

  it('no longer holds what was forgotten', () => {
    const index = folded();
    index.forget(6);
    expect(ruleAt(index, 5)).toEqual([]);
  });

  it('is the same from a snapshot, and goes on from there', () => {
    const restored = NamespaceIndex.restore(JSON.parse(JSON.stringify(folded().snapshot())));
    if (restored === undefined) throw new Error('the snapshot was not read');
    for (let position = 0; position < 12; position += 1) expect(everythingAt(restored, position)).toEqual(everythingAt(folded(), position));
    restored.apply(policySet('third', 11));
    expect(restored.policyAt(NAMESPACE, 11).version).toBe(3);
  });

  it('is not read from a snapshot of another version', () => {
    expect(NamespaceIndex.restore({ version: 2, histories: {} })).toBeUndefined();
    expect(NamespaceIndex.restore({})).toBeUndefined();
  });
});

describe('what this release recorded', () => {
  // Never written anew: a log that holds such events exists somewhere, and must be read the same by every later release.
  const { events, folded: then } = JSON.parse(readFileSync(new URL('../recorded/namespace-events.v1.json', import.meta.url), 'utf8')) as {
    events: Recorded[];
    folded: unknown;
  };
  // What is younger than the record has its default beside it.
  it('folds as it did then', () => expect(JSON.parse(JSON.stringify(folded(events).snapshot()))).toMatchObject(then as object));
  it('has every type of event', () =>
    expect(new Set(events.map(({ event }) => event.type))).toEqual(
      new Set(
        [PolicyEvent, SettingsEvent, ToolSettingsEvent, AgentEvent, EscalationEvent].flatMap(({ options }) =>
          options.map(({ shape }) => shape.type.value),
        ),
      ),
    ));
});

describe('an event that is not understood', () => {
  const inPolicy = namespaceStream('policy', NAMESPACE);
  it.each([
    ['of a type of the future', recorded(inPolicy, { type: 'PolicyForked' }, 1)],
    ['of a shape of the future', recorded(inPolicy, { type: 'PolicySet', document: document('r'), more: 1 }, 1)],
    ['in a stream it does not belong in', recorded(agentStream, { type: 'PolicySet', document: document('r') }, 1)],
    ['that cannot have happened', recorded(agentStream, { type: 'AgentConsented', by: alice, consentedAt: NOON }, 1)],
  ])('is named: %s', (_, event) => {
    const index = new NamespaceIndex();
    expect(index.apply(event)).toContain(event.event.type);
    expect(everythingAt(index, 99)).toEqual(everythingAt(new NamespaceIndex(), 99));
  });

  it('is named with its version', () => {
    const event = policySet('r', 1);
    expect(new NamespaceIndex().apply({ ...event, event: { ...event.event, schemaVersion: 2 } })).toBe(
      'PolicySet of version 2 is not known',
    );
  });
});
