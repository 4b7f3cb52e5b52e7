import type { AuthorityClient, Bus, Roots } from '@sharedos/bus';
import type { AuditEvent, Instant, Result, RuntimeChoice, Unavailable } from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';
import type { Envelope, Runtime } from '@sharedos/runtime';
import type { ToolRegistry } from '@sharedos/tools';
import type { AcceptanceRules } from './accept-request.ts';
import type { Replies } from './await-reply.ts';
import type { ContextToolsPorts } from './context-tools.ts';
import type { ManagePorts } from './mcp/manage-servers.ts';
import type { LedgerRoom } from './ledger-room.ts';
import type { NamespaceLimits } from './namespace-limits.ts';
import type { Counters } from './reserved-uses.ts';
import type { RunningTurns } from './running-turns.ts';

/** What the tool-executor runs on. */
export interface Ports {
  readonly bus: Bus;
  readonly authority: AuthorityClient;
  readonly ledger: Ledger;
  /** Whether the ledger has room for new turns. */
  readonly ledgerRoom: Pick<LedgerRoom, 'isShort'>;
  /** Who handed out the uses of bounded grants, for giving back what a turn never used. */
  readonly counters: Counters;
  readonly registry: ToolRegistry;
  /** The MCP servers of owners; nobody has any when absent. */
  readonly mcp?: Pick<ManagePorts, 'servers' | 'access'>;
  /** The tools of one owner alone; none when absent. */
  readonly contextTools?: NonNullable<ContextToolsPorts['contextTools']>;
  /** Answers to what turns ask other principals. */
  readonly replies: Replies;
  readonly envelope: Envelope;
  /** The runtime of an agent, by what its registration chose; the envelope's for all when absent. Throws for a name that is not there. */
  readonly runtimeOf?: (choice: RuntimeChoice | undefined) => Runtime;
  /** The envelope's default limits; they are part of what makes two requests the same. */
  readonly defaults: {
    readonly maxSteps: number;
    readonly maxToolCalls?: number;
    readonly timeoutMs: number;
    readonly drainGraceMs: number;
  };
  readonly running: RunningTurns;
  /** What each namespace may ask of this process; as much as it likes when absent. */
  readonly limits?: NamespaceLimits;
  readonly rules: AcceptanceRules;
  /** Who may administer the turns of others, and whose grants let others; nobody when absent. */
  readonly roots?: Roots;
  /** Writes one record of a request that never became a turn, and so has no place in the ledger. */
  readonly audit: (event: AuditEvent) => Promise<Result<void, Unavailable>>;
  readonly clock: () => Instant;
  readonly ids: () => string;
  /** This process, by a name that no later process has: whoever claims under it can be asked whether it still runs. */
  readonly instance: string;
  readonly onProviderError: (error: unknown, at: { readonly tool: string; readonly code: string; readonly traceId: string }) => void;
  readonly onDefect: (error: unknown, where: string) => void;
}
