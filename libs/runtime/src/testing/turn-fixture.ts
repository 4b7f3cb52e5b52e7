import type { ExecutionEvent, ExecutionRequest, ToolCall, ToolDefinition } from '@sharedos/contracts';
import { type EnvelopeOptions, type TurnPorts, createEnvelope } from '../envelope.ts';
import type { EnvelopeDefaults } from '../limits.ts';
import type { Runtime, RuntimeHost } from '../runtime.ts';
import { type ManualTime, countingIds, manualTime } from './manual-time.ts';
import { MemoryTurnKernel, type MemoryTurnKernelOptions } from './memory-turn-kernel.ts';

export const START = '2027-03-10T10:00:00.000Z';

const scout = { kind: 'agent', agentId: 'scout' } as const;
const maren = { kind: 'human', userId: 'maren' } as const;

/** A tool as registered; `write` and not idempotent unless told otherwise. */
export const toolNamed = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: `The tool ${name}.`,
  namespace: 'files',
  source: 'sharedos',
  readWrite: 'write',
  inputSchema: { type: 'object' },
  requiredCapability: { resource: { namespace: 'files', path: [] }, action: name.split('.').at(-1) ?? name },
  ...more,
});

export const READ = toolNamed('files.read', { readWrite: 'read' });
export const APPEND = toolNamed('files.append');
export const ESCALATE = toolNamed('sharedos.escalate', {
  readWrite: 'read',
  namespace: 'sharedos',
  requiredCapability: { resource: { namespace: 'sharedos', path: ['escalation'] }, action: 'request' },
});

/** A valid request of the agent `scout` under the authority of `maren`, asking for every tool above. */
export const aRequest = (more: Partial<ExecutionRequest> = {}): ExecutionRequest => ({
  version: '1',
  executionId: 'exec-1',
  agent: scout,
  context: {
    namespaceId: 'north',
    actor: scout,
    authority: maren,
    owner: maren,
    purpose: 'draft-brief',
    traceId: 'trace-1',
    enabledToolNamespaces: ['files', 'sharedos'],
    now: '2020-01-01T00:00:00Z',
  },
  message: {
    version: '1',
    id: 'message-1',
    sender: maren,
    receiver: scout,
    purpose: 'draft-brief',
    payload: { text: 'summarise' },
    traceId: 'trace-1',
    createdAt: '2027-03-10T09:59:00Z',
  },
  tools: [READ, APPEND, ESCALATE],
  ...more,
});

export const aCall = (id: string, tool: string = READ.name, more: Partial<ToolCall> = {}): ToolCall => ({
  id,
  tool,
  arguments: { path: ['Vault', 'a.md'] },
  traceId: 'trace-1',
  requestedAt: START,
  ...more,
});

/** A runtime out of its one function. */
export const runtimeOf = (run: (host: RuntimeHost, request: Parameters<Runtime['run']>[0], signal: AbortSignal) => unknown): Runtime => ({
  manifest: { id: 'test.runtime', version: '1.0.0', protocolVersion: '1' },
  run: async (request, host, signal) => (await run(host, request, signal)) as never,
});

export interface World {
  readonly time: ManualTime;
  readonly kernel: MemoryTurnKernel;
  /** What a live observer heard. */
  readonly heard: ExecutionEvent[];
  /** What the turn-error hook was told. */
  readonly errors: unknown[];
  readonly run: (request?: ExecutionRequest, ports?: Partial<TurnPorts>) => ReturnType<ReturnType<typeof createEnvelope>['run']>;
}

export const aWorld = (options: {
  readonly runtime: Runtime;
  readonly kernel?: MemoryTurnKernelOptions;
  readonly defaults?: Partial<EnvelopeDefaults>;
  readonly envelope?: Partial<EnvelopeOptions>;
  readonly time?: ManualTime;
}): World => {
  const time = options.time ?? manualTime(START);
  const kernel = new MemoryTurnKernel({
    tools: [{ definition: READ }, { definition: APPEND }, { definition: ESCALATE }],
    ...options.kernel,
  });
  const heard: ExecutionEvent[] = [];
  const errors: unknown[] = [];
  const envelope = createEnvelope({
    runtime: options.runtime,
    clock: time.clock,
    ids: countingIds('event'),
    timers: time.timers,
    defaults: { maxSteps: 16, timeoutMs: 60_000, drainGraceMs: 0, ...options.defaults },
    onTurnError: (error) => void errors.push(error),
    ...options.envelope,
  });
  return {
    time,
    kernel,
    heard,
    errors,
    run: (request = aRequest(), ports = {}) => envelope.run(request, { kernel, onEvent: (event) => void heard.push(event), ...ports }),
  };
};
