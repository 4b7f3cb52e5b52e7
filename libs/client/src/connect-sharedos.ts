import { BusConnectError, connectBus } from '@sharedos/bus';
import {
  type Address,
  addressPath,
  type BlamedOperation,
  encodeName,
  type ExplainedRecord,
  inboxPrefix,
  type RecomputedPage,
  type RecordsBlame,
  type RecordsExplain,
  type RecordsPage,
  type Result,
} from '@sharedos/contracts';
import { type EscalationCommands, escalationCommands } from './escalations.ts';
import { type AgentOptions, type Decide, type RunningAgent, runAgent } from './agent.ts';
import { type RecomputeOptions, blameOperation, explainRecord, recomputePages } from './audit-recompute.ts';
import { type AuditItem, type AuditOptions, type ReplayOptions, replayAudit, replayPages } from './audit-replay.ts';
import { type AuditTail, type AuditTailOptions, tailAudit } from './audit-tail.ts';
import type { ClientError } from './client-error.ts';
import { type GrantCommands, grantCommands } from './grants.ts';
import {
  type AgentCommands,
  type PolicyCommands,
  type SettingsCommands,
  agentCommands,
  policyCommands,
  settingsCommands,
} from './management.ts';
import { type McpServerCommands, mcpServerCommands } from './mcp-servers.ts';
import { type Inbox, inboxOf } from './messages.ts';
import { type OperationCommands, operationCommands } from './operations.ts';
import { type RecordQueries, recordQueries } from './records.ts';
import type { Session } from './session.ts';
import { type ToolCommands, toolCommands } from './tools.ts';
import { type Turns, turnsOf } from './turns.ts';

export { BusConnectError };

export interface ConnectOptions {
  /** URLs of the broker, `nats://host:port`. */
  readonly servers: string | readonly string[];
  readonly user: string;
  /** The password, or the seed of the user's nkey. */
  readonly password: string;
  /** Certificates to believe the broker by, in PEM. With it, or `tls://` in a URL, there is no connection without TLS. */
  readonly caFile?: string;
  readonly namespaceId: string;
  /** Who this connection is. The broker holds the user to it: naming somebody else only makes every call refused. */
  readonly principal: Address;
  /** Shown by the broker's monitoring. */
  readonly name?: string;
  /** How long a call waits for its answer. Default 10 000. */
  readonly requestTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
}

/** SharedOS as one principal of one namespace sees it. Every call has a deadline and answers a value; none throws. */
export interface SharedOS {
  readonly namespaceId: string;
  readonly principal: Address;
  readonly turns: Turns;
  readonly grants: GrantCommands;
  readonly policy: PolicyCommands;
  readonly settings: SettingsCommands;
  readonly agents: AgentCommands;
  readonly escalations: EscalationCommands;
  readonly operations: OperationCommands;
  readonly tools: ToolCommands;
  readonly mcpServers: McpServerCommands;
  readonly messages: Inbox;
  readonly records: RecordQueries;
  readonly audit: {
    /** Follows the audit as it happens; only configured auditors of the namespace may. */
    tail(options: AuditTailOptions): Promise<Result<AuditTail, ClientError>>;
    /** Records from any place on, complete and in order; with `follow`, for ever. Needs a grant to read the audit. */
    records(options?: AuditOptions): AsyncGenerator<Result<AuditItem, ClientError>>;
    /** The same page by page, with the proof of each record and the signed heads. */
    pages(options?: ReplayOptions): AsyncGenerator<Result<RecordsPage, ClientError>>;
    /** Recorded decisions computed again from the log, or under a supposition, page by page: how many, and which differ. */
    recompute(options?: RecomputeOptions): AsyncGenerator<Result<RecomputedPage, ClientError>>;
    /** Why one recorded decision came out as it did, from the log alone. */
    explain(asked: RecordsExplain): Promise<Result<ExplainedRecord, ClientError>>;
    /** The records of an operation, the grants it was decided by up to their roots, and who issued them. */
    blame(asked: RecordsBlame): Promise<Result<BlamedOperation, ClientError>>;
  };
  /** Decides the steps of this agent's turns, where its registration says `remote`. For agents alone. */
  agent(decide: Decide, options?: AgentOptions): Promise<Result<RunningAgent, ClientError>>;
  /** Whether the broker is reached now; a lost connection comes back by itself. */
  connected(): boolean;
  /** Calls `watcher` whenever the connection is lost or back. @returns A function that ends it. */
  watchConnection(watcher: (connected: boolean) => void): () => void;
  /** Ends every wait and the connection. May be called again. */
  close(): Promise<void>;
}

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Connects to SharedOS as a principal.
 *
 * @throws BusConnectError when the broker is not reached in time or refuses the user: its message says what to do.
 */
export const connectSharedOS = async (options: ConnectOptions): Promise<SharedOS> => {
  const { namespaceId, principal } = options;
  const bus = await connectBus({
    servers: options.servers,
    user: options.user,
    pass: options.password,
    ...(options.caFile === undefined ? {} : { caFile: options.caFile }),
    name: options.name ?? `client/${encodeName(...addressPath(principal))}`,
    inboxPrefix: inboxPrefix(namespaceId, principal),
    ...(options.connectTimeoutMs === undefined ? {} : { connectTimeoutMs: options.connectTimeoutMs }),
  });
  const session: Session = { bus, namespaceId, principal, requestTimeoutMs: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS };
  const turns = turnsOf(session);
  return {
    namespaceId,
    principal,
    turns,
    grants: grantCommands(session),
    policy: policyCommands(session),
    settings: settingsCommands(session),
    agents: agentCommands(session),
    escalations: escalationCommands(session),
    operations: operationCommands(session),
    tools: toolCommands(session),
    mcpServers: mcpServerCommands(session),
    messages: inboxOf(session),
    records: recordQueries(session),
    audit: {
      tail: (tail) => tailAudit(session, tail),
      records: (replay = {}) => replayAudit(session, replay),
      pages: (replay = {}) => replayPages(session, replay),
      recompute: (recompute = {}) => recomputePages(session, recompute),
      explain: (asked) => explainRecord(session, asked),
      blame: (asked) => blameOperation(session, asked),
    },
    agent: (decide, agentOptions) => runAgent(session, decide, agentOptions),
    connected: () => bus.connected,
    watchConnection: (watcher) => bus.watch(watcher),
    close: async () => {
      await turns.close();
      await bus.close();
    },
  };
};
