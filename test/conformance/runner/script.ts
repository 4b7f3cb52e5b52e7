import type { AccessContext, JsonObj, RuntimeExecutionRequest, RuntimeTurnOutcome } from '@sharedos/contracts';
import type { RuntimeHost } from '@sharedos/runtime';
import { type Bag, type Step, UnknownToRunner, onlyKnown } from './case.ts';

const LINES = ['call', 'step', 'inspect', 'op', 'input', 'complete', 'throw', 'malformed', 'fail', 'hang', 'escalate'];

/** What of a case's world a script acts in. */
export interface ScriptWorld {
  readonly clock: string;
  readonly grants: readonly Bag[];
  readonly parents: readonly Bag[];
  nextId(prefix: string): string;
}

/** A runtime that does one script, and what came of its calls and inspections, in order. */
export interface Script {
  readonly calls: readonly Bag[];
  /** Whether the runtime was entered. */
  readonly started: boolean;
  run(request: RuntimeExecutionRequest, host: RuntimeHost, signal: AbortSignal): Promise<RuntimeTurnOutcome>;
}

/** @param perform Does what a line says the host does meanwhile. */
export const newScript = (world: ScriptWorld, lines: readonly Bag[], perform: (step: Step) => Promise<unknown>): Script => {
  for (const line of lines) onlyKnown('a line of a script', line, LINES);
  const calls: Bag[] = [];
  const script = {
    calls,
    started: false,
    run: async (request: RuntimeExecutionRequest, host: RuntimeHost, signal: AbortSignal): Promise<RuntimeTurnOutcome> => {
      script.started = true;
      for (const line of lines) {
        if ('call' in line) calls.push(await call(world, host, request, line));
        else if ('inspect' in line) calls.push({ nothingFound: !holdsGrants(world, [request, { ...host }]) });
        else if ('op' in line)
          await perform({ id: 'host', op: line['op'] as string, ...('input' in line ? { input: line['input'] as Bag } : {}) });
        else if ('throw' in line) throw new Error('the runtime fell');
        else if ('hang' in line) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
        else return outcomeOf(line);
      }
      return { type: 'complete', output: null };
    },
  };
  return script;
};

/** What a turn answered, with what its script saw: the code of its error, and by whom it was ended where it failed. */
export const turnAnswer = (
  result: { readonly status: string; readonly events: readonly { readonly type: string; readonly data?: unknown }[] },
  { started, calls }: Script,
  reasonOfEscalation: string | undefined,
): Bag => {
  const failure = result.events.find(({ type }) => type === 'turn.failed')?.data as { readonly source?: string } | undefined;
  // An escalated turn has no error; its reason is in its record alone.
  const asked = result.status === 'escalated' ? reasonOfEscalation : undefined;
  const code = asked ?? (result as { readonly error?: { readonly code: string } }).error?.code;
  return {
    ...result,
    started,
    calls,
    ...(code === undefined ? {} : { code }),
    ...(failure === undefined ? {} : { endedBy: failure.source }),
  };
};

const call = async (
  world: ScriptWorld,
  host: RuntimeHost,
  { context }: { readonly context: Pick<AccessContext, 'traceId'> },
  line: Bag,
): Promise<Bag> => {
  const { tool, arguments: given, ...unknown } = line['call'] as Bag;
  onlyKnown('a call of a script', unknown, []);
  const asked = {
    id: world.nextId('call'),
    tool: tool as string,
    arguments: given as JsonObj,
    traceId: context.traceId,
    requestedAt: world.clock,
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
const holdsGrants = (world: ScriptWorld, handed: readonly unknown[]): boolean => {
  const ids = new Set([...world.grants, ...world.parents].map(({ id }) => id));
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
