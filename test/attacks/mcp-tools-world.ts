import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AccessContext,
  type Address,
  type CapabilityGrant,
  type JsonObj,
  type McpPlace,
  type McpRequirement,
  type McpServer,
  type McpTool,
  type ToolResult,
  timestampOf,
} from '@sharedos/contracts';
import { SharedOSKernel } from '@sharedos/kernel';
import {
  type McpLimits,
  type OwnServer,
  type OperatorList,
  type SecretStore,
  ServerPool,
  type ServerTools,
  mcpTools,
  sealedFiles,
} from '@sharedos/tools';

export const NAMESPACE = 'demo';
export const ALICE = { kind: 'human', userId: 'alice' } as const satisfies Address;
export const BOB = { kind: 'human', userId: 'bob' } as const satisfies Address;
export const SCOUT = { kind: 'agent', agentId: 'scout' } as const satisfies Address;
const NOW = '2026-01-01T12:00:00Z';
const HOSTILE = join(import.meta.dirname, 'hostile-mcp-server.ts');

/** What a customer tool needs: the customer that its argument names. */
export const CUSTOMER: McpRequirement = { path: ['customers', '{arguments.customerId}'], action: 'read' };

/** A pool of real processes, and words for what owners and agents do with it. */
export interface McpWorld {
  readonly pool: ServerPool;
  readonly secrets: SecretStore;
  readonly folder: string;
  /** Tools that were told to have changed. */
  readonly changed: string[];
  own(mode: string, owner?: Address): OwnServer;
  /** What the server tells of its tools, asked anew. */
  told(own: OwnServer): Promise<ServerTools>;
  /** All of its usable tools, as an owner approves them now. */
  approved(own: OwnServer, requirement?: McpRequirement): Promise<McpServer>;
  /** One call of an agent that was granted `paths`, each with what is below it, as the kernel answers it. */
  call(own: OwnServer, server: McpServer, tool: string, args: JsonObj, options?: CallOptions): Promise<ToolResult>;
  stop(): Promise<void>;
}

export interface CallOptions {
  readonly paths?: readonly (readonly string[])[];
  readonly signal?: AbortSignal;
}

/** Deadlines that no busy machine comes near: what ends a call under them is a rule. */
const PATIENT: Partial<McpLimits> = { connectMs: 60_000, listMs: 60_000, callMs: 60_000, retryMs: 0 };
/** For a server that does nothing: then the deadline is the rule. */
export const IMPATIENT: Partial<McpLimits> = { connectMs: 1_000, listMs: 1_000, callMs: 1_000 };

export const mcpWorld = (given: Partial<McpLimits> = {}, more: Partial<OperatorList> = {}): McpWorld => {
  const limits = { ...PATIENT, ...given };
  const folder = mkdtempSync(join(tmpdir(), 'mcp-attacks-'));
  const secrets = sealedFiles({ folder: join(folder, 'secrets'), key: Buffer.alloc(32, 7) });
  const program = (mode: string) => ({
    command: process.execPath,
    args: [HOSTILE, mode, join(folder, 'pids')],
    env: { SHARED: 'by the operator', FOLDER: '{folder}' },
    secrets: ['API_KEY'],
  });
  const processes = { get: program, has: () => true } as unknown as OperatorList['processes'];
  const list: OperatorList = { processes, origins: new Set(), ...more };
  const pool = new ServerPool({ list, secrets, folder: join(folder, 'state'), limits });
  const changed: string[] = [];

  const told: McpWorld['told'] = async (own) => {
    const connection = await pool.connection(own);
    if (!connection.ok) throw new Error(connection.error);
    const tools = await connection.value.tools(true);
    if (!tools.ok) throw new Error(tools.error);
    return tools.value;
  };

  return {
    pool,
    secrets,
    folder,
    changed,
    own: (mode, owner = ALICE) => ({
      namespaceId: NAMESPACE,
      owner,
      server: 'crm',
      place: { kind: 'process', process: mode } satisfies McpPlace,
    }),
    told,
    approved: async (own, requirement) => {
      const { tools } = await told(own);
      const approved = tools.map((tool): McpTool => ({
        ...tool,
        requirement: requirement ?? { path: ['tools', tool.name], action: 'call' },
      }));
      return { server: own.server, place: own.place, tools: approved, changed: [] };
    },
    call: async (own, server, tool, args, { paths = [[]], signal = new AbortController().signal } = {}) => {
      const grant: CapabilityGrant = {
        id: 'g',
        namespaceId: NAMESPACE,
        subject: SCOUT,
        issuer: own.owner,
        capabilities: paths.map((path) => ({
          resource: { namespace: 'mcp', path: [...path] },
          actions: ['*'],
          scope: 'descendants' as const,
        })),
        constraints: {},
        issuedAt: '2026-01-01T09:00:00Z',
      };
      const kernel = new SharedOSKernel({ grantSource: { load: async () => [grant] } });
      const ports = {
        pool,
        onChanged: (_: OwnServer, tools: readonly { readonly name: string }[]) => void changed.push(...tools.map(({ name }) => name)),
      };
      for (const handler of mcpTools(ports, own, server)) kernel.registerTool(handler);
      const context: AccessContext = {
        namespaceId: NAMESPACE,
        actor: SCOUT,
        authority: own.owner,
        owner: own.owner,
        purpose: 'prepare the call',
        traceId: 'trace',
        enabledToolNamespaces: ['mcp'],
        now: timestampOf(Date.parse(NOW)),
      };
      return kernel.invokeTool(context, { id: 'call', tool, arguments: args, traceId: 'trace', requestedAt: context.now }, { signal });
    },
    stop: async () => {
      await pool.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

export const codeOf = (result: ToolResult): string => (result.status === 'succeeded' ? 'succeeded' : result.error.code);
