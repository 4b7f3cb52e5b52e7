import { type Address, type EscalationQuestion, type EscalationResolution, timestampOf } from '@sharedos/contracts';
import type { EventStore, StreamId } from '@sharedos/event-store';
import { countingIds } from '@sharedos/testing';
import { type World, type WorldOptions, alice, authorizerWorld, bob, reading, settled } from '../authorizer.fixture.ts';
import type { CommandPorts } from '../ports.ts';
import { type KeptEscalations, keepEscalations } from './keep-escalations.ts';
import { openEscalation } from './open-escalation.ts';
import type { Known } from './question.ts';
import { listEscalations, showEscalation } from './read-escalations.ts';
import { resolveEscalation } from './resolve-escalation.ts';
import { reviewRight } from './review-right.ts';
import type { Tidings } from './tidings.ts';

export const question: EscalationQuestion = {
  id: 'ask-1',
  requester: bob,
  owner: alice,
  authority: alice,
  reviewer: alice,
  purpose: 'p1',
  reason: 'may I read?',
  traceId: 'trace-1',
  executionId: 'execution-1',
  requestedAt: '2026-01-01T12:00:00.000Z',
};
const wanted = { ...reading('Work', 'Plan'), resource: { ...reading('Work', 'Plan').resource, owner: alice } };
/** The same, about reading one plan. */
export const named: EscalationQuestion = {
  ...question,
  requestedAuthority: {
    id: 'ask-1',
    namespaceId: 'w1',
    requester: bob,
    owner: alice,
    requestedAt: '2026-01-01T12:00:00.000Z',
    capabilities: [wanted],
    purpose: 'p1',
  },
};
/** The same, about one call. */
export const aboutCall = (digest: string): EscalationQuestion => ({
  ...named,
  call: { id: 'call-1', tool: 'files.read', arguments: { path: ['Work', 'Plan'] }, digest },
});

export const approve: EscalationResolution = { answer: 'approve' };

/** One replica, and what is done to questions on it. */
export interface AskedWorld {
  readonly world: World;
  /** What was told of questions, in order. */
  readonly told: string[];
  /** From which revision on an answer was told to stand, by question. */
  readonly revisions: Map<string, string>;
  readonly tidings: Tidings;
  /** What every append of a stream category comes upon first: throwing it is the end of the process. */
  onAppend: (stream: StreamId) => Promise<void>;
  open(asked?: EscalationQuestion): ReturnType<ReturnType<typeof openEscalation>>;
  resolve(
    resolution: EscalationResolution,
    more?: { by?: Address; commandId?: string; escalationId?: string },
  ): ReturnType<ReturnType<typeof resolveEscalation>>;
  list(by?: Address): ReturnType<ReturnType<typeof listEscalations>>;
  show(by?: Address): ReturnType<ReturnType<typeof showEscalation>>;
  keep(): KeptEscalations;
  close(): Promise<void>;
}

/** Two replicas are sent different commands. */
const nextCommand = countingIds('answer');

export const askedWorld = async (options?: WorldOptions): Promise<AskedWorld> => {
  const world = await authorizerWorld(options);
  const told: string[] = [];
  const revisions = new Map<string, string>();
  const tidings: Tidings = {
    opened: (_, { id }) => void told.push(`opened ${id}`),
    answered: (_, { status, question: { id } }: Known, revision) => {
      told.push(`${status} ${id}`);
      revisions.set(id, revision);
    },
  };
  const append: EventStore['append'] = async (stream, ...more) => {
    await asked.onAppend(stream);
    return world.store.append(stream, ...more);
  };
  const store: EventStore = { ...world.store, append };
  const ports: CommandPorts = { ...world.ports, store };
  const mayReview = reviewRight(ports, world.turns);
  const kept: KeptEscalations[] = [];
  const asked: AskedWorld = {
    world,
    told,
    revisions,
    tidings,
    onAppend: async () => undefined,
    open: (put = { ...question, requestedAt: timestampOf(world.clock.now()) }) =>
      openEscalation(ports, tidings)({ question: put }, world.delivery('escalation.open')),
    resolve: (resolution, { by = alice, commandId = nextCommand(), escalationId = 'ask-1' } = {}) =>
      resolveEscalation(ports, mayReview, tidings)({ commandId, escalationId, resolution }, world.delivery('escalation.resolve', by)),
    list: (by = alice) => listEscalations(ports, mayReview)({}, world.delivery('escalation.list', by)),
    show: (by = alice) => showEscalation(ports, mayReview)({ escalationId: 'ask-1' }, world.delivery('escalation.show', by)),
    keep: () => {
      const keeping = keepEscalations(ports, tidings, { onTrouble: (what) => void told.push(`trouble ${what}`) });
      kept.push(keeping);
      return keeping;
    },
    close: async () => {
      for (const keeping of kept) await keeping.stop();
      await settled();
      await world.close();
    },
  };
  return asked;
};
