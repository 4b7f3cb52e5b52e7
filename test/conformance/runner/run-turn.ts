import {
  type AccessContext,
  type AgentAddress,
  type ExecutionOptions,
  type JsonObj,
  PROTOCOL_VERSION,
  type RuntimeExecutionRequest,
  type RuntimeTurnOutcome,
} from '@sharedos/contracts';
import { type RuntimeHost, embeddedTurnKernel, runTurn } from '@sharedos/runtime';
import { type Bag, type Step, UnknownToRunner, onlyKnown } from './case.ts';
import type { Stage } from './stage.ts';

const LINES = ['call', 'step', 'inspect', 'op', 'input', 'complete', 'throw', 'malformed', 'fail', 'hang', 'escalate'];

/** Runs a whole turn of a scripted runtime through the envelope, over the embedded kernel. */
export const runScriptedTurn = async (
  stage: Stage,
  context: AccessContext,
  input: Bag,
  perform: (step: Step) => Promise<unknown>,
): Promise<Bag> => {
  const { agent, script, limits, messageReceiver = agent, channel } = input;
  if (channel !== undefined) throw new UnknownToRunner(`a turn over ${String(channel)}`);
  const lines = script as Bag[];
  for (const line of lines) onlyKnown('a line of a script', line, LINES);
  const calls: Bag[] = [];
  let started = false;

  const run = async (request: RuntimeExecutionRequest, host: RuntimeHost, signal: AbortSignal): Promise<RuntimeTurnOutcome> => {
    started = true;
    for (const line of lines) {
      if ('call' in line) calls.push(await call(stage, host, request, line));
      else if ('inspect' in line) calls.push({ nothingFound: !holdsGrants(stage, [request, { ...host }]) });
      else if ('op' in line)
        await perform({ id: 'host', op: line['op'] as string, ...('input' in line ? { input: line['input'] as Bag } : {}) });
      else if ('throw' in line) throw new Error('the runtime fell');
      else if ('hang' in line) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      else return outcomeOf(line);
    }
    return { type: 'complete', output: null };
  };

  const result = await runTurn(
    {
      version: PROTOCOL_VERSION,
      executionId: stage.nextId('execution'),
      agent: agent as AgentAddress,
      context,
      message: {
        version: PROTOCOL_VERSION,
        id: stage.nextId('message'),
        sender: context.owner,
        receiver: messageReceiver as AgentAddress,
        purpose: context.purpose,
        payload: {},
        traceId: context.traceId,
        createdAt: stage.clock,
      },
      tools: [...stage.definitions()],
      ...(limits === undefined ? {} : { options: limits as ExecutionOptions }),
    },
    {
      runtime: { manifest: { id: 'conformance.scripted', version: '1', protocolVersion: PROTOCOL_VERSION }, run },
      clock: () => stage.now,
      ids: () => stage.nextId('event'),
      defaults: {},
      kernel: embeddedTurnKernel(stage.newKernel()),
    },
  );
  const failure = result.events.find(({ type }) => type === 'turn.failed')?.data as { readonly source?: string } | undefined;
  // An escalated turn has no error; its reason is in its record alone.
  const asked = result.status === 'escalated' ? stage.audit.findLast(({ type }) => type === 'escalation.requested')?.reason : undefined;
  const code = asked ?? ('error' in result ? result.error?.code : undefined);
  return {
    ...result,
    started,
    calls,
    ...(code === undefined ? {} : { code }),
    ...(failure === undefined ? {} : { endedBy: failure.source }),
  };
};

const call = async (stage: Stage, host: RuntimeHost, { context }: RuntimeExecutionRequest, line: Bag): Promise<Bag> => {
  const { tool, arguments: given, ...unknown } = line['call'] as Bag;
  onlyKnown('a call of a script', unknown, []);
  const asked = {
    id: stage.nextId('call'),
    tool: tool as string,
    arguments: given as JsonObj,
    traceId: context.traceId,
    requestedAt: stage.clock,
  };
  const result = await host.invokeTool(asked, line['step'] === undefined ? {} : { step: line['step'] as number });
  return { ...result, ...(result.status === 'succeeded' ? {} : { code: result.error.code }) };
};

const outcomeOf = (line: Bag): RuntimeTurnOutcome => {
  if ('complete' in line) return { type: 'complete', output: (line['complete'] ?? null) as JsonObj };
  if ('fail' in line) return { type: 'fail', error: { code: 'runtime_gave_up', message: String(line['fail']) } };
  if ('malformed' in line) return { type: 'nonsense' } as unknown as RuntimeTurnOutcome;
  if ('escalate' in line) return { type: 'escalate', reason: (line['escalate'] as { readonly reason: string }).reason };
  throw new UnknownToRunner('a line of a script does nothing');
};

const FORBIDDEN_KEYS = [
  'grants',
  'grantId',
  'matchedGrantId',
  'issuer',
  'authority',
  'enabledToolNamespaces',
  'constraints',
  'parentGrantId',
];

/** Walks all that a runtime was handed and looks for a grant, for who issued it, or for settings of tool namespaces. */
const holdsGrants = (stage: Stage, handed: readonly unknown[]): boolean => {
  const ids = new Set([...stage.grants, ...stage.parents].map(({ id }) => id));
  const seen = new Set<unknown>();
  const pending: unknown[] = [...handed];
  for (let value = pending.pop(); value !== undefined || pending.length > 0; value = pending.pop()) {
    if (typeof value === 'string' && ids.has(value)) return true;
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue;
    seen.add(value);
    for (const key of Reflect.ownKeys(value)) {
      if (typeof key === 'string' && FORBIDDEN_KEYS.includes(key)) return true;
      const member: unknown = Object.getOwnPropertyDescriptor(value, key)?.value;
      pending.push(member);
    }
  }
  return false;
};
