import { randomUUID } from 'node:crypto';
import type { Route } from '@sharedos/bus';
import {
  type AccessContext,
  type AuditEvent,
  type AuthorityQuestion,
  type CapabilityConstraints,
  type InternalRequestVerb,
  type Json,
  type LedgerRecord,
  type ToolCall,
  type ToolResult,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { memoryEventStore } from '@sharedos/event-store';
import { composeRootGrant, operationKeyHash } from '@sharedos/kernel';
import { type Ledger, type MemoryRecordLog, memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { type ToolHandler, ToolRegistry } from '@sharedos/tools';
import { memoryUsageStore } from '@sharedos/usage';
import { AuthorityFold } from '../../services/authorizer/src/fold/authority-fold.ts';
import { composeAuthorizer } from '../../services/authorizer/src/compose.ts';
import { runGrantCommand } from '../../services/authorizer/src/changes/grant-command.ts';
import { TurnTokens } from '../../services/authorizer/src/turns/turn-token.ts';
import { LedgerTurn, type LedgerTurnPorts } from '../../services/tool-executor/src/ledger-turn.ts';
import type { Counters } from '../../services/tool-executor/src/reserved-uses.ts';
import { TurnWrites } from '../../services/tool-executor/src/turn-writes.ts';
import { ALICE, NAMESPACE, SCOUT } from './test-system.ts';

const DEADLINE_MS = 2_000;

/** A tool over alice's `files` that does what it is told, so that a test decides when an effect happens. */
export const toolThat = (
  name: string,
  effect: (call: ToolCall, cancel: AbortSignal) => Promise<Json | void> | Json | void,
): ToolHandler => ({
  definition: {
    name,
    description: `The tool ${name}.`,
    namespace: 'files',
    source: 'sharedos',
    readWrite: 'write',
    inputSchema: { type: 'object' },
    requiredCapability: { resource: { namespace: 'files', path: [] }, action: 'append' },
  },
  parseArguments: (raw) => raw,
  invoke: async (_context, call, cancel): Promise<ToolResult> => {
    const output = (await effect(call, cancel)) ?? { done: call.id };
    return { status: 'succeeded', callId: call.id, tool: call.tool, completedAt: timestampOf(Date.now()), output };
  },
});

/** The kernel of one turn with the real authorizer behind it, everything in this process: between any two steps a test may act. */
export interface TurnInProcess {
  readonly turn: LedgerTurn;
  readonly context: AccessContext;
  readonly log: MemoryRecordLog;
  readonly ledger: Ledger;
  call(id: string, tool: string, args?: ToolCall['arguments']): ToolCall;
  /** Opens, admits and lists, as the envelope does before a runtime runs. */
  begin(): Promise<void>;
  /** What stands of the turn. */
  records(): Promise<readonly LedgerRecord[]>;
  audit(): Promise<readonly AuditEvent[]>;
  close(): Promise<void>;
}

export const turnInProcess = async (options: {
  readonly tools: readonly ToolHandler[];
  readonly constraints?: CapabilityConstraints;
  readonly log?: (log: MemoryRecordLog) => MemoryRecordLog;
}): Promise<TurnInProcess> => {
  const store = memoryEventStore();
  const fold = new AuthorityFold(() => undefined);
  fold.follow(store);
  const memory = memoryRecordLog();
  const log = options.log?.(memory) ?? memory;
  const ledger = memoryLedger({ log, readBackMs: 50 });
  const usage = memoryUsageStore({
    spentUses: async () => {
      const uses = await ledger.uses();
      return uses.ok ? ok(uses.value.map(({ namespaceId, use }) => ({ namespaceId, ...use }))) : uses;
    },
  });
  const directAudit: AuditEvent[] = [];
  const routes = composeAuthorizer({
    store,
    fold,
    usage,
    tokens: new TurnTokens('a secret of thirty-two characters'),
    audit: async (event) => {
      directAudit.push(event);
      return ok(undefined);
    },
    clock: Date.now,
    limits: { deadlineMs: DEADLINE_MS, turnGraceMs: 30_000 },
  });

  const traceId = `trace-${randomUUID()}`;
  const delivery = { namespaceId: NAMESPACE, rest: [], traceId, signal: new AbortController().signal } as const;
  const issue = async (
    id: string,
    namespace: string,
    path: string[],
    action: string,
    constraints: CapabilityConstraints,
  ): Promise<void> => {
    const capability = { resource: { namespace, path }, actions: [action], scope: 'descendants' as const };
    const terms = { id, subject: SCOUT, capabilities: [capability], constraints };
    const grant = composeRootGrant(terms, { issuer: ALICE, namespaceId: NAMESPACE, at: Date.now() });
    if (!grant.ok) throw new Error(`the grant ${id} is none`);
    const by = { commandId: id, grantId: id, principal: ALICE, at: Date.now() };
    const issued = await runGrantCommand(store, { ...delivery, verb: 'grant.issue' }, by, { type: 'IssueGrant', grant: grant.value });
    if (!issued.ok) throw new Error(`the grant ${id} was not issued`);
  };
  await issue('run-scout', 'sharedos.execution', ['agent', 'scout'], 'invoke', {});
  await issue('append', 'files', [], 'append', options.constraints ?? {});

  const ask = async (verb: InternalRequestVerb, body: unknown) => {
    const asked = routes.find((route: Route) => route.verb === verb) as Route;
    const reply = await asked.answer(Buffer.from(JSON.stringify(body)), { ...delivery, verb });
    return reply.ok ? ok(reply.value) : { ok: false, error: { code: 'authority_unavailable', reason: reply.error.message } };
  };
  const authority = {
    open: (body: unknown) => ask('authority.open', body),
    decide: (token: string, context: AccessContext, question: AuthorityQuestion, auditIds: readonly string[]) =>
      ask('authority.decide', { token, context, question, auditIds }),
    reach: (token: string, context: AccessContext, ceilings: unknown) => ask('authority.reach', { token, context, ceilings }),
  } as unknown as LedgerTurnPorts['authority'];

  const registry = new ToolRegistry();
  for (const tool of options.tools) registry.register(tool);
  const executionId = randomUUID();
  const key = { namespaceId: NAMESPACE, kind: 'execution', requester: ALICE, id: executionId } as const;
  const operation = operationKeyHash(NAMESPACE, 'execution', ALICE, executionId);
  const turnId = randomUUID();
  const context: AccessContext = {
    namespaceId: NAMESPACE,
    actor: SCOUT,
    authority: ALICE,
    owner: ALICE,
    purpose: 'testing',
    traceId,
    enabledToolNamespaces: ['files'],
    now: timestampOf(Date.now()),
  };
  const claim = await ledger.claim(key, {
    type: 'claimed',
    at: context.now,
    ownerId: 'this-process',
    turnId,
    fingerprint: operation,
    requester: ALICE,
    operationId: executionId,
    traceId,
    requestSequence: 1,
  });
  if (!claim.ok) throw new Error('the turn was not claimed');
  const counters: Counters = {
    held: async (namespaceId, turn) => {
      const held = await usage.held(namespaceId, turn);
      return held.ok ? held.value : undefined;
    },
    release: async (namespaceId, turn, { epoch, uses }) => (await usage.release(namespaceId, turn, epoch, uses)).ok,
  };
  const ports: LedgerTurnPorts = {
    authority,
    ledger,
    counters,
    audit: async (event) => void directAudit.push(event),
    registry,
    clock: Date.now,
    ids: randomUUID,
    distrust: async () => undefined,
    onProviderError: () => undefined,
  };
  const writes = new TurnWrites(ledger, claim.value);
  const turn = new LedgerTurn(ports, writes, { turnId, operation, executionId, validForMs: 60_000 });
  const records = async (): Promise<readonly LedgerRecord[]> => {
    // An answer that its caller did not wait for is on its way.
    await writes.settled('none').catch(() => undefined);
    const history = await ledger.read(key);
    if (!history.ok) throw new Error(history.error.reason);
    return history.value?.records ?? [];
  };
  if (!(await usage.whenOpen(DEADLINE_MS))) throw new Error('the counters did not open');
  return {
    turn,
    context,
    log,
    ledger,
    call: (id, tool, args = {}) => ({ id, tool, arguments: args, traceId, requestedAt: timestampOf(Date.now()) }),
    begin: async () => {
      await turn.open(context);
      const admission = await turn.admit(SCOUT);
      if (!admission.allowed) throw new Error(`the turn was refused: ${admission.reasonCode}`);
      const { tools } = await turn.list();
      turn.offered(tools);
    },
    records,
    audit: async () => [...directAudit, ...(await records()).flatMap((record) => ('audit' in record ? record.audit : []))],
    close: async () => {
      await fold.close();
      await usage.close();
      await store.close();
      await ledger.close();
    },
  };
};
