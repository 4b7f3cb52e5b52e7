import type { Delivery, RequestVerb } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  type AuditEvent,
  type AuthorityQuestion,
  type Capability,
  type CapabilityConstraints,
  type CapabilityGrant,
  type GrantEvent,
  type OpenedAuthority,
  type Verdict,
  ok,
  timestampOf,
  unavailable,
} from '@sharedos/contracts';
import { type MemoryEventStore, memoryEventStore } from '@sharedos/event-store';
import { type ManualClock, countingIds, manualClock } from '@sharedos/testing';
import { counterMemory, memoryUsageStore } from '@sharedos/usage';
import { ActRecords } from './changes/act-records.ts';
import { AuthorityFold } from './fold/authority-fold.ts';
import type { LoadedSections, Sections } from './fold/columns.ts';
import { decideAuthority } from './turns/decide-authority.ts';
import { deriveGrant } from './changes/derive-grant.ts';
import { issueGrant } from './changes/issue-grant.ts';
import { openAuthority } from './turns/open-authority.ts';
import type { CommandPorts } from './ports.ts';
import { reachAuthority } from './turns/reach-authority.ts';
import { revokeGrant } from './changes/revoke-grant.ts';
import { TurnAuthorities } from './turns/turn-authorities.ts';
import { TurnTokens } from './turns/turn-token.ts';

export const NAMESPACE = 'w1';
export const NOON = '2026-01-01T12:00:00.000Z';
export const alice = { kind: 'human', userId: 'alice' } as const satisfies Address;
export const carol = { kind: 'human', userId: 'carol' } as const satisfies Address;
export const bob = { kind: 'agent', agentId: 'bob' } as const satisfies Address;

export const reading = (...path: string[]): Capability => ({
  resource: { namespace: 'files', path },
  actions: ['read'],
  scope: 'descendants',
});
export const toRead = (...path: string[]) => ({ resource: { namespace: 'files', path }, action: 'read' });

export const contextAt = (now: string, more: Partial<AccessContext> = {}): AccessContext => ({
  namespaceId: NAMESPACE,
  actor: bob,
  authority: alice,
  owner: alice,
  purpose: 'p1',
  traceId: 'trace-1',
  enabledToolNamespaces: ['files'],
  now,
  ...more,
});

/** A grant as an event of the log holds it: from alice to bob, unless told otherwise. */
export const grantOf = (id: string, constraints: CapabilityConstraints = {}, more: Partial<CapabilityGrant> = {}): CapabilityGrant => ({
  id,
  namespaceId: NAMESPACE,
  subject: bob,
  issuer: alice,
  capabilities: [reading('Work')],
  constraints,
  issuedAt: NOON,
  ...more,
});
export const issued = (grant: CapabilityGrant): GrantEvent => ({ type: 'GrantIssued', grant });
export const revoked = (grantId: string, revokedAt: string = NOON): GrantEvent => ({ type: 'GrantRevoked', grantId, revokedAt });

/** Sections as a snapshot file gives them back. */
export const loaded = (sections: Sections): LoadedSections =>
  new Map(Array.from(sections, ([name, parts]) => [name, new Uint8Array(Buffer.concat([...parts]))]));

/** Lets everything that needs no time run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface World {
  readonly clock: ManualClock;
  readonly store: MemoryEventStore;
  readonly fold: AuthorityFold;
  readonly counters: ReturnType<typeof counterMemory>;
  readonly ports: CommandPorts;
  readonly turns: TurnAuthorities;
  /** Audit records written so far. */
  readonly records: AuditEvent[];
  readonly troubles: string[];
  /** What the audit stream answers from now on. */
  auditWorks: boolean;
  delivery(verb: RequestVerb, principal?: Address): Delivery;
  /** Issues a grant over `Work` of `by`, from `by`, as its own command. */
  issue(
    id: string,
    constraints?: CapabilityConstraints,
    more?: { by?: Address; to?: Address; commandId?: string },
  ): ReturnType<ReturnType<typeof issueGrant>>;
  derive(
    parentGrantId: string,
    id: string,
    more?: { by?: Address; to?: Address; issuer?: Address; commandId?: string },
  ): ReturnType<ReturnType<typeof deriveGrant>>;
  revoke(grantId: string, more?: { by?: Address; commandId?: string }): ReturnType<ReturnType<typeof revokeGrant>>;
  open(more?: { context?: AccessContext; turnId?: string; validForMs?: number }): ReturnType<ReturnType<typeof openAuthority>>;
  /** Opens, and fails the test when nothing was opened. */
  opened(more?: { context?: AccessContext; turnId?: string; validForMs?: number }): Promise<OpenedAuthority>;
  ask(token: string, question: AuthorityQuestion, context?: AccessContext): ReturnType<ReturnType<typeof decideAuthority>>;
  /** Asks, and fails the test when nothing was decided. */
  verdict(token: string, question: AuthorityQuestion, context?: AccessContext): Promise<Verdict>;
  reach: ReturnType<typeof reachAuthority>;
  close(): Promise<void>;
}

/** The root principal of {@link NAMESPACE}. */
export const admin = { kind: 'human', userId: 'admin' } as const satisfies Address;

export interface WorldOptions {
  readonly deadlineMs?: number;
  readonly store?: MemoryEventStore;
  readonly clock?: ManualClock;
}

/** One replica of the authorizer, over memory. Two given one store see one log. */
export const authorizerWorld = async ({
  deadlineMs = 50,
  store = memoryEventStore({ storeId: 'log' }),
  clock = manualClock(NOON),
}: WorldOptions = {}): Promise<World> => {
  const troubles: string[] = [];
  const records: AuditEvent[] = [];
  const fold = new AuthorityFold((what) => void troubles.push(what));
  fold.follow(store);
  const counters = counterMemory();
  const usage = memoryUsageStore({ memory: counters, spentUses: async () => ok([]) });
  await usage.whenOpen(1_000);
  await settled();
  const ids = countingIds('record');
  const commands = countingIds('command');
  const turnIds = countingIds('turn');
  const audit: CommandPorts['audit'] = async (event) => {
    if (!world.auditWorks) return unavailable('the stream is away');
    records.push(event);
    return ok(undefined);
  };
  const ports: CommandPorts = {
    store,
    fold,
    usage,
    tokens: new TurnTokens('a secret of more than thirty-two characters'),
    audit,
    records: new ActRecords(audit),
    roots: { [NAMESPACE]: [admin] },
    clock: () => clock.now(),
    limits: { deadlineMs, turnGraceMs: 30_000 },
  };
  const turns = new TurnAuthorities(fold);
  const handlers = {
    issue: issueGrant(ports),
    derive: deriveGrant(ports),
    revoke: revokeGrant(ports),
    open: openAuthority(ports, turns),
    decide: decideAuthority(ports, turns),
  };
  const now = (): AccessContext => contextAt(timestampOf(clock.now()));

  const world: World = {
    clock,
    store,
    fold,
    counters,
    ports,
    turns,
    records,
    troubles,
    auditWorks: true,
    delivery: (verb, principal) => ({
      verb,
      namespaceId: NAMESPACE,
      rest: [],
      signal: new AbortController().signal,
      ...(principal === undefined ? {} : { principal }),
    }),
    issue: (id, constraints = {}, { by = alice, to = bob, commandId = commands() } = {}) =>
      handlers.issue(
        { commandId, grant: { id, subject: to, capabilities: [reading('Work')], constraints } },
        world.delivery('grant.issue', by),
      ),
    derive: (parentGrantId, id, { by = bob, to = carol, issuer, commandId = commands() } = {}) => {
      // Written with its owner: a capability without one would be read as over the deriver's own resources.
      const capability = { ...reading('Work', 'Notes'), resource: { namespace: 'files', path: ['Work', 'Notes'], owner: alice } };
      const grant = { id, subject: to, capabilities: [capability], ...(issuer === undefined ? {} : { issuer }) };
      return handlers.derive({ commandId, parentGrantId, grant }, world.delivery('grant.derive', by));
    },
    revoke: (grantId, { by = alice, commandId = commands() } = {}) =>
      handlers.revoke({ commandId, grantId }, world.delivery('grant.revoke', by)),
    open: ({ context = now(), turnId = turnIds(), validForMs = 60_000 } = {}) =>
      handlers.open({ turnId, context, validForMs, auditId: ids() }),
    opened: async (more) => {
      const opened = await world.open(more);
      if (!opened.ok) throw new Error(`not opened: ${opened.error.code}`);
      return opened.value;
    },
    ask: (token, question, context = now()) => handlers.decide({ token, context, question, auditIds: [ids(), ids()] }),
    verdict: async (token, question, context) => {
      const asked = await world.ask(token, question, context);
      if (!asked.ok) throw new Error(`not decided: ${asked.error.code} ${asked.error.message}`);
      return asked.value;
    },
    reach: reachAuthority(ports, turns),
    close: async () => {
      await ports.records.close();
      await fold.close();
      await usage.close();
    },
  };
  return world;
};
