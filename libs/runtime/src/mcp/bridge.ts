import {
  type Json,
  type ToolCall,
  ToolCall as ToolCallContract,
  ToolCatalog,
  type ToolResult,
  parseJsonText,
  randomId,
} from '@sharedos/contracts';
import { ATTRIBUTE, SPAN, type Span, recordOutcome, withSpan } from '@sharedos/telemetry';
import type { InitializeResult } from '@modelcontextprotocol/sdk/types.js';
import { contractValue } from '../contract-value.ts';
import { ContractError } from '../errors.ts';
import { untilAborted } from '../until-aborted.ts';
import type { EscalationLatch } from './escalation-latch.ts';
import { type RpcResponse, frameOf, rpcError, rpcResult } from './json-rpc.ts';
import { callResult, listedTool, toolNames } from './published.ts';

/** Versions of the protocol that are spoken; the first is answered to whoever names another, or none. */
export const MCP_VERSIONS = ['2025-06-18', '2025-03-26', '2024-11-05'] as const;
const METHODS: ReadonlySet<string> = new Set(['initialize', 'ping', 'tools/list', 'tools/call', 'notifications/initialized']);
/** Messages waiting for their turn, and messages in one batch. */
const QUEUED_MAX = 256;
const BATCH_MAX = 100;
/** Other spellings of names that are kept for diagnosis. */
const ALIASES_MAX = 64;

export interface McpBridgeOptions {
  /** The turn's effective catalogue, as published. */
  readonly catalog: ToolCatalog;
  readonly traceId: string;
  /** The turn's opening: every call of it states this instant. */
  readonly requestedAt: string;
  /** Decides and runs one call; rejects when the turn is stopped. */
  readonly invoke: (call: ToolCall) => Promise<ToolResult>;
  readonly latch?: EscalationLatch;
  readonly serverInfo: { readonly name: string; readonly version: string };
  readonly instructions?: string;
  /** Ids of calls, fresh for each; random when absent. */
  readonly ids?: () => string;
  /** Fires when the turn is stopped: what is then on its way is aborted and not answered. */
  readonly signal?: AbortSignal;
}

/** What becomes of one text: an answer, none (it held notifications alone), or neither, because the turn was stopped meanwhile. */
export type McpAnswer =
  | { readonly kind: 'answered'; readonly answer: RpcResponse | readonly RpcResponse[]; readonly wellFormed: boolean }
  | { readonly kind: 'accepted' }
  | { readonly kind: 'aborted' };

/**
 * An MCP server over the catalogue of one turn. Messages are handled one after another in the order they came, over whatever they
 * came, so that a call never runs beside the ask for a human that was made before it.
 *
 * The server of the MCP package is not used for this: it answers an unknown version with its own newest, runs requests beside one
 * another, and knows methods that are not offered here. Its types are, and its clients are what this is tested with.
 *
 * @see spec/tools.md §9; spec/runtimes.md §5, "MCP server rules"
 */
export interface McpBridge {
  readonly executionId: string;
  /** Never rejects. */
  handle(text: string): Promise<McpAnswer>;
  /** From here on every request is an internal error and reaches nobody; what is on its way is aborted. Idempotent. */
  close(): void;
  /** Names that were called in another spelling, with what each was taken for. */
  readonly aliases: Readonly<Record<string, string>>;
}

class Aborted extends Error {}

/** @throws ContractError for what is no catalogue: one of more than 512 tools is refused and never cut. */
export const openMcpBridge = (options: McpBridgeOptions): McpBridge => {
  const { traceId, requestedAt, latch, ids = randomId } = options;
  const parsed = contractValue(ToolCatalog, options.catalog);
  if (!parsed.ok) throw new ContractError('tool catalogue', parsed.error);
  const { executionId, catalogHash, tools } = parsed.value;
  const published = new Map(tools.map((tool) => [tool.name, tool]));
  const nameOf = toolNames(tools);
  const listed = { tools: tools.map(listedTool), _meta: { 'sharedos/catalogHash': catalogHash, 'sharedos/executionId': executionId } };
  const aliases: Record<string, string> = {};
  const closing = new AbortController();
  const stopped = options.signal === undefined ? closing.signal : AbortSignal.any([closing.signal, options.signal]);
  let queued = 0;
  let last: Promise<unknown> = Promise.resolve();

  const initialize = (params: Json | undefined): InitializeResult => {
    const wanted = member(params, 'protocolVersion');
    return {
      protocolVersion: MCP_VERSIONS.find((version) => version === wanted) ?? MCP_VERSIONS[0],
      capabilities: { tools: { listChanged: false } },
      serverInfo: { ...options.serverInfo },
      ...(options.instructions === undefined ? {} : { instructions: options.instructions }),
    };
  };

  const call = async (params: Json | undefined, span: Span): Promise<object | 'params'> => {
    const called = member(params, 'name');
    if (typeof called !== 'string') return 'params';
    const tool = nameOf(called);
    if (tool !== called && Object.keys(aliases).length < ALIASES_MAX) aliases[called] = tool;
    const given = member(params, 'arguments');
    const id = ids();
    // Before the arguments are looked at: whoever asks for a human in broken words has asked.
    const latched = latch?.intercept({ id, tool, arguments: given });
    const wanted = contractValue(ToolCallContract, { id, tool, arguments: given ?? {}, traceId, requestedAt });
    if (latched === undefined && (!wanted.ok || given === null)) return 'params';
    span.setAttributes({ [ATTRIBUTE.callId]: id, [ATTRIBUTE.tool]: tool });
    const result = latched ?? (await run((wanted as { readonly value: ToolCall }).value));
    recordOutcome(span, result.status, result.status === 'succeeded' ? undefined : result.error.code);
    return callResult(result, published.get(tool));
  };

  const run = async (asked: ToolCall): Promise<ToolResult> => {
    try {
      return await untilAborted(options.invoke(asked), stopped);
    } catch (error) {
      if (stopped.aborted) throw new Aborted();
      throw error;
    }
  };

  const answerOne = async (message: Json): Promise<RpcResponse | undefined> => {
    const frame = frameOf(message);
    if (frame.kind === 'invalid') return frame.answer;
    const method = METHODS.has(frame.method) ? frame.method : '_OTHER';
    return withSpan(SPAN.mcpHandle, { attributes: { [ATTRIBUTE.executionId]: executionId, [ATTRIBUTE.method]: method } }, async (span) => {
      if (frame.kind === 'notification') return undefined;
      const { id, params } = frame;
      if (closing.signal.aborted) return rpcError(id, 'internal');
      switch (frame.method) {
        case 'initialize':
          return rpcResult(id, initialize(params));
        case 'ping':
          return rpcResult(id, {});
        case 'tools/list':
          return rpcResult(id, listed);
        case 'tools/call': {
          const result = await call(params, span);
          return result === 'params' ? rpcError(id, 'params') : rpcResult(id, result);
        }
        default:
          return rpcError(id, 'method');
      }
    });
  };

  /** One that cannot be handled is an error of that message alone. */
  const answerSafely = async (message: Json): Promise<RpcResponse | undefined> => {
    try {
      return await answerOne(message);
    } catch (error) {
      if (error instanceof Aborted) throw error;
      return unhandled(message);
    }
  };

  const answerText = async (text: string, answerTo: (message: Json) => Promise<RpcResponse | undefined>): Promise<McpAnswer> => {
    const message = parseJsonText(text);
    if (!message.ok) return malformed('parse');
    if (!Array.isArray(message.value)) return answered(await answerTo(message.value));
    if (message.value.length === 0 || message.value.length > BATCH_MAX) return malformed('request');
    const answers: RpcResponse[] = [];
    for (const one of message.value as readonly Json[]) {
      const answer = await answerTo(one);
      if (answer !== undefined) answers.push(answer);
    }
    return answered(answers.length === 0 ? undefined : answers);
  };

  return {
    executionId,
    aliases,
    close: () => closing.abort(new Aborted()),
    handle: async (text) => {
      if (queued >= QUEUED_MAX) return answerText(text, async (message) => unhandled(message));
      queued += 1;
      const mine = last.then(() => answerText(text, answerSafely)).catch((): McpAnswer => ({ kind: 'aborted' }));
      last = mine;
      try {
        return await mine;
      } finally {
        queued -= 1;
      }
    },
  };
};

const unhandled = (message: Json): RpcResponse | undefined => {
  const frame = frameOf(message);
  return frame.kind === 'request' ? rpcError(frame.id, 'internal') : undefined;
};

const answered = (answer: RpcResponse | readonly RpcResponse[] | undefined): McpAnswer =>
  answer === undefined ? { kind: 'accepted' } : { kind: 'answered', answer, wellFormed: true };
const malformed = (error: 'parse' | 'request'): McpAnswer => ({ kind: 'answered', answer: rpcError(null, error), wellFormed: false });

const member = (value: Json | undefined, key: string): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
    ? (value as Readonly<Record<string, Json>>)[key]
    : undefined;
