import { randomBytes } from 'node:crypto';
import {
  type Instant,
  PROTOCOL_VERSION,
  type RuntimeExecutionRequest,
  type ToolCatalog,
  addressId,
  timestampOf,
} from '@sharedos/contracts';
import { publishToolCatalog, toolCatalogHash } from '@sharedos/kernel';
import { type McpBridge, openMcpBridge } from '../mcp/bridge.ts';
import { type EscalationLatch, createEscalationLatch } from '../mcp/escalation-latch.ts';
import { type McpHttpServer, serveMcpHttp } from '../mcp/http.ts';
import { mintSessionToken, verifySessionToken } from '../mcp/session-token.ts';
import type { RuntimeHost } from '../runtime.ts';

export interface TurnBridgeOptions {
  readonly clock: () => Instant;
  readonly serverName: string;
  /** Called when a call begins and when it ends. */
  readonly onActivity?: () => void;
}

/** The tools of one turn, served to one harness on loopback. */
export interface TurnBridge {
  readonly url: string;
  readonly token: string;
  readonly catalogHash: string;
  readonly latch: EscalationLatch;
  readonly bridge: McpBridge;
  /** The bridge first, so that nothing more reaches the turn; then the port. */
  close(): Promise<void>;
}

const KEY_BYTES = 32;
/** How much longer than its turn a token may live: it locates a session that is then closed. */
const TOKEN_GRACE_MS = 60_000;

/** One turn's bridge, behind its broker. A server is never shared: it would answer one user with what is another's. */
export const openTurnBridge = async (
  request: RuntimeExecutionRequest,
  host: RuntimeHost,
  signal: AbortSignal,
  { clock, serverName, onActivity = () => undefined }: TurnBridgeOptions,
): Promise<TurnBridge> => {
  const { executionId, context } = request;
  const tools = publishToolCatalog(request.tools);
  const catalogHash = toolCatalogHash(tools);
  const catalog: ToolCatalog = { version: PROTOCOL_VERSION, executionId, catalogHash, tools: [...tools] };
  const offered = new Set(tools.map(({ name }) => name));
  const latch = createEscalationLatch({ offered, completedAt: context.now, annotate: host.annotate });
  const bridge = openMcpBridge({
    catalog,
    traceId: context.traceId,
    requestedAt: context.now,
    invoke: async (call) => {
      onActivity();
      try {
        // No step is declared: the vendor's loop has none that we know of, so only the call budget bounds it.
        return await host.invokeTool(call);
      } finally {
        onActivity();
      }
    },
    latch,
    serverInfo: { name: serverName, version: PROTOCOL_VERSION },
    signal,
  });

  const session = {
    executionId,
    namespaceId: context.namespaceId,
    actor: `${context.actor.kind}:${addressId(context.actor)}`,
    catalogHash,
  };
  const key = randomBytes(KEY_BYTES);
  const expiresAt = timestampOf(clock() + host.limits.timeoutMs + TOKEN_GRACE_MS);
  const token = mintSessionToken({ ...session, expiresAt }, key);
  let server: McpHttpServer;
  try {
    server = await serveMcpHttp(bridge, {
      mayConnect: (presented) => verifySessionToken(presented, { key, now: clock(), expected: session }).ok,
    });
  } catch (error) {
    bridge.close();
    throw error;
  }
  return {
    url: server.url,
    token,
    catalogHash,
    latch,
    bridge,
    close: () => {
      bridge.close();
      return server.close();
    },
  };
};
