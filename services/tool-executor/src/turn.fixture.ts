import {
  type AccessContext,
  type AuditEvent,
  type AuthorityQuestion,
  type ExecutionResult,
  type HeldUse,
  type LedgerRecord,
  type OpenedAuthority,
  type ReachAndDiscovery,
  type Result,
  type ToolCall,
  type ToolResult,
  type Verdict,
  err,
  hashOf,
  ok,
  revisionOf,
} from '@sharedos/contracts';
import { authorizationChecked } from '@sharedos/kernel';
import { type Ledger, type LedgerClaim, type MemoryRecordLog, type OperationKey, memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { type ManualClock, countingIds, manualClock } from '@sharedos/testing';
import { type ToolHandler, ToolRegistry } from '@sharedos/tools';
import { LedgerTurn } from './ledger-turn.ts';
import type { Counters } from './reserved-uses.ts';
import type { AuthorityPort } from './turn-lease.ts';
import { TurnWrites } from './turn-writes.ts';

export const NOON = '2026-01-01T12:00:00.000Z';
export const alice = { kind: 'human', userId: 'alice' } as const;
export const scout = { kind: 'agent', agentId: 'scout' } as const;
export const REVISION = revisionOf('log', 7);

export const context: AccessContext = {
  namespaceId: 'w1',
  actor: scout,
  authority: alice,
  owner: alice,
  purpose: 'p1',
  traceId: 'trace-1',
  enabledToolNamespaces: ['files'],
  now: NOON,
};
export const key: OperationKey = { namespaceId: 'w1', kind: 'execution', requester: alice, id: 'exec-1' };
export const claimedBy = (ownerId: string, turnId = 'turn-1'): LedgerRecord => ({
  type: 'claimed',
  at: NOON,
  ownerId,
  turnId,
  fingerprint: 'f'.repeat(64),
  requester: alice,
  operationId: 'exec-1',
  traceId: 'trace-1',
  agent: scout,
  requestSequence: 1,
});

export const call = (id: string, tool = 'files.read', more: Partial<ToolCall> = {}): ToolCall => ({
  id,
  tool,
  arguments: { path: ['a'] },
  traceId: 'trace-1',
  requestedAt: NOON,
  ...more,
});
export const succeeded = ({ id, tool }: ToolCall, output: string = id): ToolResult => ({
  status: 'succeeded',
  callId: id,
  tool,
  completedAt: NOON,
  output,
});

/** A tool over `files` whose effect a test decides. Its `path` must be there, and must not be `['unresolvable']`. */
export const toolThat = (
  name: string,
  invoke: ToolHandler['invoke'] = async (_, asked) => succeeded(asked),
  namespace = 'files',
): ToolHandler => ({
  definition: {
    name,
    description: `The tool ${name}.`,
    namespace,
    source: 'test',
    readWrite: 'write',
    inputSchema: { type: 'object' },
    requiredCapability: { resource: { namespace: 'files', path: [] }, action: 'read' },
  },
  parseArguments: (raw) => {
    if (!Array.isArray(raw['path'])) throw new Error('no path');
    return raw;
  },
  resolveRequirement: (_, { arguments: { path } }) => {
    if (JSON.stringify(path) === '["unresolvable"]') throw new Error('unresolvable');
    return { resource: { namespace: 'files', path: path as string[] }, action: 'read' };
  },
  invoke,
});

type Said = Partial<Verdict> | 'no answer';

export interface TurnWorld {
  readonly turn: LedgerTurn;
  readonly clock: ManualClock;
  readonly log: MemoryRecordLog;
  readonly ledger: Ledger;
  readonly claim: LedgerClaim;
  /** Questions asked of the authorizer, in order. */
  readonly asked: AuthorityQuestion[];
  readonly distrusted: string[];
  readonly providerErrors: string[];
  /** Records that were stored past the ledger. */
  readonly stored: AuditEvent[];
  /** Uses given back to the counters. */
  readonly released: HeldUse[];
  /** What the authorizer says from now on; allowed by the grant `g` unless told otherwise. */
  says: (question: AuthorityQuestion) => Said | Promise<Said>;
  invoke(asked: ToolCall, signal?: AbortSignal): Promise<ToolResult>;
  /** Opens, admits and lists, as the envelope does before a runtime runs. */
  begin(): Promise<void>;
  end(status?: 'succeeded' | 'cancelled'): Promise<void>;
  records(): Promise<readonly LedgerRecord[]>;
  audit(): Promise<readonly AuditEvent[]>;
  /** The records of calls and decisions, short: type, outcome, reason, cause. */
  told(): Promise<readonly (readonly unknown[])[]>;
}

export interface TurnWorldOptions {
  readonly tools?: readonly ToolHandler[];
  readonly opens?: () => Awaited<ReturnType<AuthorityPort['open']>>;
  /** What is answered to a question about so many ceilings; all are in reach when it answers nothing. */
  readonly reaches?: (count: number) => Result<ReachAndDiscovery, { code: 'authority_unavailable'; reason: string }> | undefined;
  readonly log?: MemoryRecordLog;
  /** What the counters say the turn was handed out. */
  readonly holds?: () => Awaited<ReturnType<Counters['held']>>;
  /** As of `LedgerTurnPorts`. */
  readonly isListable?: boolean;
  /** Wraps the ledger that the turn writes to. */
  readonly through?: (ledger: Ledger) => Ledger;
}

export const opened: OpenedAuthority = {
  status: 'resolved',
  token: 'token',
  revision: REVISION,
  admittedAt: NOON,
  validUntil: NOON,
  snapshot: { hash: hashOf('authority'), grantIds: ['g'], grantCount: 1, loadedAt: NOON },
};

export const turnWorld = async (options: TurnWorldOptions = {}): Promise<TurnWorld> => {
  const clock = manualClock(NOON);
  const { log = memoryRecordLog(), through = (ledger) => ledger } = options;
  const ledger = through(memoryLedger({ log, readBackMs: 20 }));
  const claimed = await ledger.claim(key, claimedBy('here'));
  if (!claimed.ok) throw new Error('the turn of this test was not claimed');
  const registry = new ToolRegistry();
  for (const tool of options.tools ?? [toolThat('files.read')]) registry.register(tool);
  const asked: AuthorityQuestion[] = [];
  const distrusted: string[] = [];
  const providerErrors: string[] = [];
  const stored: AuditEvent[] = [];
  const released: HeldUse[] = [];
  const counters: Counters = {
    held: async () => options.holds?.(),
    release: async (_, __, { uses }) => released.push(...uses) > 0,
  };
  const authority: AuthorityPort = {
    open: async () => options.opens?.() ?? ok(opened),
    reach: async (_, __, ceilings) =>
      options.reaches?.(ceilings.length) ??
      ok({
        revision: REVISION,
        reach: { status: 'computed', reach: [] },
        discovered: ceilings.map(() => ({ allowed: true, reasonCode: 'allowed' })),
      }),
    decide: async (_, of, question, [id]) => {
      asked.push(question);
      const said = await world.says(question);
      if (said === 'no answer') return err({ code: 'authority_unavailable', reason: 'silence' });
      const request =
        question.kind === 'authorize' ? question.request : 'requirement' in question.exact ? question.exact.requirement : question.ceiling;
      const { status = 'allowed', code = status } = said;
      const decision =
        status === 'allowed' ? { allowed: true, reasonCode: code, matchedGrantId: 'g' } : { allowed: false, reasonCode: code };
      const event = authorizationChecked(
        { id, at: Date.parse(of.now), context: of },
        { request, decided: { decision }, consume: true, operationId: question.operationId },
      );
      return ok({ revision: REVISION, status, code, decision, audit: [event], ...request, ...said });
    },
  };
  const ports = {
    authority,
    ledger,
    counters,
    audit: async (event: AuditEvent) => void stored.push(event),
    registry,
    clock: () => clock.now(),
    ids: countingIds('record'),
    ...(options.isListable === undefined ? {} : { isListable: options.isListable }),
    distrust: async (namespaceId: string, epoch: string) => void distrusted.push(`${namespaceId} ${epoch}`),
    onProviderError: (error: unknown, { code }: { readonly code: string }) =>
      void providerErrors.push(`${code}: ${(error as Error).message}`),
  };
  const writes = new TurnWrites(ledger, claimed.value);
  const turn = new LedgerTurn(ports, writes, {
    turnId: 'turn-1',
    operation: hashOf('exec-1'),
    executionId: 'exec-1',
    validForMs: 60_000,
  });
  const world: TurnWorld = {
    turn,
    clock,
    log,
    ledger,
    claim: claimed.value,
    asked,
    distrusted,
    providerErrors,
    stored,
    released,
    says: () => ({}),
    invoke: (one, signal = new AbortController().signal) => turn.invokeTool(context, one, signal),
    begin: async () => {
      await turn.open(context);
      await turn.admit(scout);
      const { tools } = await turn.list();
      turn.offered(tools);
    },
    end: (status = 'succeeded') => turn.end(context, resultOf(status), status === 'cancelled' ? { endedBy: 'envelope' } : {}),
    records: async () => {
      // An answer that its caller did not wait for is on its way.
      await writes.settled('none').catch(() => undefined);
      const read = await memoryLedger({ log }).read(key);
      return read.ok ? (read.value?.records ?? []) : [];
    },
    audit: async () => (await world.records()).flatMap((record) => ('audit' in record ? record.audit : [])),
    told: async () =>
      (await world.audit()).map(({ type, outcome, reason, metadata }) =>
        [type, outcome, reason, metadata?.['cause']].filter((part) => part !== undefined),
      ),
  };
  return world;
};

const resultOf = (status: 'succeeded' | 'cancelled'): ExecutionResult => {
  const of = { version: '1' as const, executionId: 'exec-1', traceId: 'trace-1', events: [], startedAt: NOON, completedAt: NOON };
  return status === 'succeeded'
    ? { ...of, status, output: null }
    : { ...of, status, error: { code: 'turn_cancelled', message: 'The turn was cancelled.' } };
};
