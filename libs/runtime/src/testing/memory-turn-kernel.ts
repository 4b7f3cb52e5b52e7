import type {
  AccessContext,
  AgentAddress,
  AuthorizationDecision,
  ExecutionResult,
  Json,
  ReachResult,
  ToolCall,
  ToolDefinition,
  ToolResult,
} from '@sharedos/contracts';
import type { TurnKernel } from '../turn-kernel.ts';

export interface MemoryTool {
  readonly definition: ToolDefinition;
  /** The kernel's whole answer; a refusal of the kernel is one too. Succeeds with `null` when absent. */
  readonly answer?: (call: ToolCall, context: AccessContext, signal: AbortSignal) => ToolResult | Promise<ToolResult>;
}

/** The steps at which a test may let the kernel throw, or hang for ever. */
export type KernelStep = 'open' | 'admit' | 'list' | 'invokeTool' | 'recordRefusal' | 'recordEscalation' | 'end';

export interface MemoryTurnKernelOptions {
  readonly tools?: readonly MemoryTool[];
  readonly reach?: ReachResult;
  readonly admission?: AuthorizationDecision;
  /** Uses that the grant to run the agent has left; shared by the kernels of several turns. */
  readonly invokeUses?: { left: number };
  /** Runs before a step does its work. */
  readonly before?: Partial<Record<KernelStep, () => void | Promise<void>>>;
}

/** What the one terminal record would say. */
export interface MemoryEnd {
  readonly at: string;
  readonly result: ExecutionResult;
  readonly endedBy?: 'envelope' | 'runtime';
  readonly failClosed: boolean;
}

/**
 * A kernel of one turn, in memory: it admits, lists and answers as it was told, and remembers in words and in order what it was
 * asked.
 */
export class MemoryTurnKernel implements TurnKernel {
  /** For example `open`, `admit`, `list`, `offered files.read`, `call files.read`, `refused … turn_draining`, `end succeeded`. */
  readonly asked: string[] = [];
  readonly contexts: AccessContext[] = [];
  readonly calls: ToolCall[] = [];
  readonly ends: MemoryEnd[] = [];
  /** Whether the turn holds authority now. */
  held = false;
  readonly #options: MemoryTurnKernelOptions;

  constructor(options: MemoryTurnKernelOptions = {}) {
    this.#options = options;
  }

  async open(context: AccessContext): Promise<void> {
    this.asked.push('open');
    this.contexts.push(context);
    await this.#before('open');
    this.held = true;
  }

  async admit(_agent: AgentAddress): Promise<AuthorizationDecision> {
    this.asked.push('admit');
    await this.#before('admit');
    const { admission, invokeUses } = this.#options;
    if (admission !== undefined && !admission.allowed) return admission;
    if (invokeUses !== undefined && invokeUses.left === 0) return { allowed: false, reasonCode: 'grant_exhausted' };
    if (invokeUses !== undefined) invokeUses.left -= 1;
    return { allowed: true, reasonCode: 'allowed', matchedGrantId: 'g-invoke' };
  }

  async list(): Promise<{ readonly reach: ReachResult; readonly tools: readonly ToolDefinition[] }> {
    this.asked.push('list');
    await this.#before('list');
    const { reach = { status: 'computed', reach: [] }, tools = [] } = this.#options;
    return { reach, tools: tools.map((tool) => tool.definition) };
  }

  offered(tools: readonly ToolDefinition[]): void {
    this.asked.push(['offered', ...tools.map((tool) => tool.name)].join(' '));
  }

  async invokeTool(context: AccessContext, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    this.asked.push(`call ${call.tool}`);
    this.contexts.push(context);
    this.calls.push(call);
    await this.#before('invokeTool');
    const tool = this.#options.tools?.find(({ definition }) => definition.name === call.tool);
    if (tool?.answer !== undefined) return tool.answer(call, context, signal);
    return succeeded(call, context, null);
  }

  async recordRefusal(_context: AccessContext, call: ToolCall, refusal: { readonly code: string; readonly cause?: string }): Promise<void> {
    this.asked.push(['refused', call.tool, refusal.code, ...(refusal.cause === undefined ? [] : [refusal.cause])].join(' '));
    await this.#before('recordRefusal');
  }

  async recordEscalation(_context: AccessContext, escalation: { readonly reason: string }): Promise<void> {
    this.asked.push(`escalation ${escalation.reason}`);
    await this.#before('recordEscalation');
  }

  close(): void {
    if (this.held) this.asked.push('close');
    this.held = false;
  }

  async end(
    context: AccessContext,
    result: ExecutionResult,
    end: { readonly endedBy?: 'envelope' | 'runtime'; readonly failClosed: boolean },
  ): Promise<void> {
    this.asked.push(`end ${result.status}`);
    await this.#before('end');
    this.ends.push({ at: context.now, result, ...end });
  }

  async #before(step: KernelStep): Promise<void> {
    await this.#options.before?.[step]?.();
  }
}

export const succeeded = (call: ToolCall, context: AccessContext, output: Json): ToolResult => ({
  status: 'succeeded',
  callId: call.id,
  tool: call.tool,
  completedAt: context.now,
  output,
});

export const denied = (call: ToolCall, context: AccessContext, code: string): ToolResult => ({
  status: 'denied',
  callId: call.id,
  tool: call.tool,
  completedAt: context.now,
  error: { code, message: 'The kernel refused the call.' },
});
