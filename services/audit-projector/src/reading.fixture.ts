import type { Bus, Delivery } from '@sharedos/bus';
import {
  type Address,
  type AuditEvent,
  type AuthorityQuestion,
  type Lineage,
  type ProtocolError,
  type RecordsQuery,
  type RecordsReplay,
  type Result,
  type Unavailable,
  err,
  ok,
  revisionOf,
  unavailable,
} from '@sharedos/contracts';
import { authorizationChecked } from '@sharedos/kernel';
import { countingIds, manualClock } from '@sharedos/testing';
import { logQuestions } from './ask-log.ts';
import type { Ports } from './ports.ts';
import { queryRecords, summarizeRecords } from './query-records.ts';
import { NOON, alice, recordOf, recordStore, sealKeys } from './record.fixture.ts';
import { replayRecords } from './replay-records.ts';

export const carol = { kind: 'human', userId: 'carol' } as const;
export const auditor = { kind: 'human', userId: 'auditor' } as const;
export const REVISION = revisionOf('log', 3);
export const record = (id: string, namespaceId = 'w1') => recordOf(id, { namespaceId, type: 'turn.ended' });

/** What answers readers, over a store in memory and a world that says what it is told to. */
export const projector = () => {
  const records = recordStore();
  const written: AuditEvent[] = [];
  const asked: { actor: Address; authority: Address; purpose: string; question: AuthorityQuestion }[] = [];
  const world = {
    records,
    written,
    /** Whom the authorizers were asked about, and what. */
    asked,
    says: 'allowed' as 'allowed' | 'denied' | 'nothing',
    head: (): Promise<Result<number, Unavailable>> => Promise.resolve(ok(records.position)),
    behind: undefined as string | undefined,
    building: undefined as string | undefined,
    folded: async (_timeoutMs: number): Promise<boolean> => false,
    clock: manualClock(NOON),
    auditWorks: true,
    /** What the log says of a grant. */
    lineage: (_grantId: string): Result<Lineage, ProtocolError> => ok({ links: [] }),
    summary: (principal: Address = auditor) => {
      const delivery: Delivery = { verb: 'records.summary', namespaceId: 'w1', principal, rest: [], signal: new AbortController().signal };
      return summarizeRecords(ports)({}, delivery);
    },
    query: (body: RecordsQuery = {}, principal: Address = auditor, namespaceId = 'w1') => {
      const delivery: Delivery = { verb: 'records.query', namespaceId, principal, rest: [], signal: new AbortController().signal };
      return queryRecords(ports)(body, delivery);
    },
    replay: (body: RecordsReplay, principal: Address = auditor, namespaceId = 'w1') => {
      const delivery: Delivery = { verb: 'records.replay', namespaceId, principal, rest: [], signal: new AbortController().signal };
      return replayRecords(ports)(body, delivery);
    },
  };
  const ports: Ports = {
    authority: {
      open: async () =>
        world.says === 'nothing'
          ? err({ code: 'authority_unavailable', reason: 'silence' })
          : ok({
              status: 'resolved',
              token: 't',
              revision: REVISION,
              admittedAt: NOON,
              validUntil: NOON,
              snapshot: { hash: 'a'.repeat(64), grantIds: [], grantCount: 0, loadedAt: NOON },
            }),
      decide: async (_, context, question, [id]) => {
        if (question.kind !== 'authorize') throw new Error('a query is authorized plainly');
        asked.push({ actor: context.actor, authority: context.authority, purpose: context.purpose, question });
        const allowed = world.says === 'allowed';
        const code = allowed ? 'allowed' : 'no_matching_grant';
        const event = authorizationChecked(
          { id, at: Date.parse(NOON), context },
          { request: question.request, decided: { decision: { allowed, reasonCode: code } }, consume: false },
        );
        return ok({ revision: REVISION, status: allowed ? 'allowed' : 'denied', code, audit: [event] });
      },
    },
    log: { ...logQuestions({} as Bus, 1), lineage: async (_, { grantId }) => world.lineage(grantId) },
    records,
    keys: sealKeys(),
    folded: (timeoutMs) => world.folded(timeoutMs),
    head: () => world.head(),
    behind: () => world.behind,
    building: () => world.building,
    roots: { w1: [alice, carol] },
    audit: async (event) => {
      if (!world.auditWorks) return unavailable('the stream is away');
      written.push(event);
      return ok(undefined);
    },
    clock: () => world.clock.now(),
    ids: countingIds('id'),
    onParked: () => undefined,
  };
  return world;
};
