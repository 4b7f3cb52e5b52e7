import { randomUUID } from 'node:crypto';
import { AuthorityClient } from '@sharedos/bus';
import { type AccessContext, type Address, type ToolCall, type ToolResult, hashOf, timestampOf } from '@sharedos/contracts';
import { jetStreamLedger } from '@sharedos/ledger';
import { type ToolHandler, ToolRegistry, filesProvider, filesTools } from '@sharedos/tools';
import { LedgerTurn } from '../../services/tool-executor/src/ledger-turn.ts';
import { countersOver } from '../../services/tool-executor/src/reserved-uses.ts';
import { TurnWrites } from '../../services/tool-executor/src/turn-writes.ts';
import { type BenchSystem, FILE, NAMESPACE, SCOUT, TOOL } from './bench-system.ts';

/** The same call without the work of a tool: what is left is mediation alone. */
export const NO_TOOL = 'files.nothing';

/** The tool-executor's own mediation, composed here as its `main.ts` composes it, over the real broker and the real authorizer. */
export interface ExecutorTurn {
  readonly turn: LedgerTurn;
  readonly context: AccessContext;
  /** One mediated call, from the exact arguments to its settled record. */
  call(tool: string): Promise<ToolResult>;
  /** Bytes of one record of a call in the ledger, `admitted` and `settled` on average. */
  recordBytes(): Promise<number>;
}

const DEADLINE_MS = 5_000;
const VALID_MS = 600_000;

export const contextOf = (owner: Address): AccessContext => ({
  namespaceId: NAMESPACE,
  actor: SCOUT,
  authority: owner,
  owner,
  purpose: 'benchmark',
  traceId: randomUUID(),
  enabledToolNamespaces: ['files'],
  now: timestampOf(Date.now()),
});

export const benchRegistry = (filesRoot: string): ToolRegistry => {
  const registry = new ToolRegistry();
  for (const tool of filesTools(filesProvider({ root: filesRoot }))) registry.register(tool);
  registry.register(withoutWork(handlerOf(registry, TOOL)));
  return registry;
};

export const handlerOf = (registry: ToolRegistry, name: string): ToolHandler => {
  const handler = registry.get(name);
  if (handler === undefined) throw new Error(`there is no tool ${name}`);
  return handler;
};

const withoutWork = (like: ToolHandler): ToolHandler => ({
  ...like,
  definition: { ...like.definition, name: NO_TOOL },
  invoke: async (_, call) => ({
    status: 'succeeded',
    callId: call.id,
    tool: call.tool,
    completedAt: timestampOf(Date.now()),
    output: { kind: 'file', size: 8, version: 'none' },
  }),
});

export const benchCall = (context: AccessContext, tool: string, id: string): ToolCall => ({
  id,
  tool,
  arguments: FILE,
  traceId: context.traceId,
  requestedAt: context.now,
});

/** A turn of scout for `owner`, claimed and open, whose calls can be made one by one. */
export const openExecutorTurn = async ({ bus, stack }: BenchSystem, owner: Address): Promise<ExecutorTurn> => {
  const ledger = jetStreamLedger(bus);
  const registry = benchRegistry(stack.filesRoot);
  const context = contextOf(owner);
  const [turnId, executionId] = [randomUUID(), randomUUID()];
  const key = { namespaceId: NAMESPACE, kind: 'execution', requester: owner, id: executionId } as const;
  const claim = await ledger.claim(key, {
    type: 'claimed',
    at: context.now,
    ownerId: 'bench',
    turnId,
    fingerprint: hashOf({ executionId }),
    requester: owner,
    operationId: executionId,
    traceId: context.traceId,
    agent: SCOUT,
    requestSequence: 0,
  });
  if (!claim.ok) throw new Error(`the turn was not claimed: ${JSON.stringify(claim.error)}`);
  const turn = new LedgerTurn(
    {
      authority: new AuthorityClient(bus, DEADLINE_MS),
      ledger,
      counters: countersOver(bus),
      audit: async () => undefined,
      registry,
      clock: Date.now,
      ids: randomUUID,
      distrust: async () => undefined,
      onProviderError: (error) => {
        throw error;
      },
    },
    new TurnWrites(ledger, claim.value),
    { turnId, operation: hashOf({ executionId }), executionId, validForMs: VALID_MS },
  );
  await turn.open(context);
  const decision = await turn.admit(SCOUT);
  if (!decision.allowed) throw new Error(`the turn was refused: ${decision.reasonCode}`);
  const { tools } = await turn.list();
  turn.offered(tools);
  const { signal } = new AbortController();
  let calls = 0;
  return {
    turn,
    context,
    call: async (tool) => {
      calls += 1;
      const now = { ...context, now: timestampOf(Date.now()) };
      const result = await turn.invokeTool(now, benchCall(now, tool, `call-${calls}`), signal);
      if (result.status !== 'succeeded') throw new Error(`a call was ${result.status}: ${result.error.code}`);
      return result;
    },
    recordBytes: async () => {
      const read = await ledger.read(key);
      const records = read.ok ? (read.value?.records ?? []) : [];
      const ofCalls = records.filter(({ type }) => type === 'admitted' || type === 'settled');
      if (ofCalls.length === 0) throw new Error('no call of this turn is on record');
      return Math.round(ofCalls.reduce((sum, record) => sum + Buffer.byteLength(JSON.stringify(record)), 0) / ofCalls.length);
    },
  };
};
