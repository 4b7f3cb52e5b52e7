import type { Delivery } from '@sharedos/bus';
import {
  type Address,
  type McpAdd,
  type McpApprove,
  type McpCommand,
  type McpInspect,
  type McpInspected,
  type McpRemove,
  type McpSecret,
  type McpSecrets,
  type McpServer,
  type McpServers,
  type McpTool,
  type ProtocolError,
  type Reply,
  type Result,
  err,
  ok,
  refused,
} from '@sharedos/contracts';
import { ADMIN_PURPOSE, type AdminAct, adminChanged, invariant } from '@sharedos/kernel';
import { MCP_REFUSALS, type OwnServer, SECRETS_MAX, type ServerTools, isAllowed, isSecretOf } from '@sharedos/tools';
import type { Ports } from '../ports.ts';
import type { McpAccess } from './mcp-settings.ts';
import type { OwnServers } from './own-servers.ts';

export type ManagePorts = Pick<Ports, 'audit' | 'clock' | 'ids'> & {
  readonly servers: OwnServers;
  /** Absent where the operator lets nobody connect a server. */
  readonly access?: McpAccess | undefined;
};

/** Owners manage their own servers: who asks is whose they are. */
const ownerOf = ({ namespaceId, principal }: Delivery): { readonly namespaceId: string; readonly owner: Address } => {
  invariant(principal !== undefined, 'servers are managed by principals');
  return { namespaceId, owner: principal };
};

const placeRefused = refused('mcp_place_refused', 'the operator of this system lets nobody connect there');

export const listServers =
  (ports: ManagePorts) =>
  async (_: object, delivery: Delivery): Promise<Reply<McpServers>> =>
    shown(ports, ownerOf(delivery));

export const addServer =
  (ports: ManagePorts) =>
  async ({ commandId, server, place }: McpAdd, delivery: Delivery): Promise<Reply<McpServers>> => {
    if (ports.access === undefined || !isAllowed(ports.access.list, place)) return placeRefused;
    return shown(ports, ownerOf(delivery), { commandId, command: { type: 'AddMcpServer', server, place } });
  };

export const removeServer =
  (ports: ManagePorts) =>
  async ({ commandId, server }: McpRemove, delivery: Delivery): Promise<Reply<McpServers>> => {
    const of = ownerOf(delivery);
    const removed = await ports.servers.read(of, { commandId, command: { type: 'RemoveMcpServer', server } });
    if (!removed.ok) return { ok: false, error: removed.error };
    // Whoever has this name next must not find the secrets of the one before it.
    const cleared = await ports.access?.secrets.clear({ ...of, server });
    if (cleared?.ok === false) return refused('unavailable', 'the server is removed, but not its secrets: remove them by name', true);
    return shown(ports, of);
  };

/** What a server says of itself now, beside what was approved of it. */
export const inspectServer =
  (ports: ManagePorts) =>
  async ({ server }: McpInspect, delivery: Delivery): Promise<Reply<McpInspected>> => {
    const told = await toldBy(ports, ownerOf(delivery), server);
    if (!told.ok) return { ok: false, error: told.error };
    const { known, tools, refused: unusable, listHash } = told.value;
    const approved = new Map(known.tools.map((tool) => [tool.name, tool.hash]));
    const stateOf = (name: string, hash: string): 'new' | 'approved' | 'changed' => {
      if (!approved.has(name)) return 'new';
      return approved.get(name) === hash && !known.changed.includes(name) ? 'approved' : 'changed';
    };
    return {
      ok: true,
      value: {
        server,
        listHash,
        tools: tools.map(({ name, description, inputSchema, readOnly, hash }) => ({
          name,
          description,
          inputSchema,
          readOnly,
          hash,
          state: stateOf(name, hash),
        })),
        refused: [...unusable],
        gone: known.tools.map(({ name }) => name).filter((name) => !tools.some((tool) => tool.name === name)),
      },
    };
  };

/** Approves what a person saw: another list than that is refused, and nothing of it is approved. */
export const approveServer =
  (ports: ManagePorts) =>
  async ({ commandId, server, listHash, tools: wanted, requirements = [] }: McpApprove, delivery: Delivery): Promise<Reply<McpServers>> => {
    const of = ownerOf(delivery);
    const told = await toldBy(ports, of, server);
    if (!told.ok) return { ok: false, error: told.error };
    const usable = new Set(told.value.tools.map(({ name }) => name));
    const unknown = [...(wanted ?? []), ...requirements.map(({ name }) => name)].find((name) => !usable.has(name));
    if (told.value.listHash !== listHash || unknown !== undefined)
      return refused('mcp_list_changed', 'the server tells of other tools than those that were seen; look at it again');
    const stated = new Map(requirements.map(({ name, requirement }) => [name, requirement]));
    const before = new Map(told.value.known.tools.map(({ name, requirement }) => [name, requirement]));
    const tools = told.value.tools
      .filter(({ name }) => wanted === undefined || wanted.includes(name))
      .map((tool): McpTool => ({
        ...tool,
        requirement: stated.get(tool.name) ?? before.get(tool.name) ?? { path: ['tools', tool.name], action: 'call' },
      }));
    return shown(ports, of, { commandId, command: { type: 'ApproveMcpServer', server, tools } });
  };

/** Keeps or forgets a secret. That it was done is on record; what it is, and how long, is not. */
export const keepSecret =
  (ports: ManagePorts) =>
  async ({ server, name, value }: McpSecret, delivery: Delivery): Promise<Reply<McpSecrets>> => {
    const of = ownerOf(delivery);
    const { access } = ports;
    const known = await serverOf(ports, of, server);
    if (!known.ok) return { ok: false, error: known.error };
    if (access === undefined) return placeRefused;
    if (value !== null && !isSecretOf(access.list, known.value.place, name))
      return refused('mcp_secret_refused', 'the server has no use for a secret of this name');
    const { namespaceId, traceId = ports.ids() } = delivery;
    const act: AdminAct = {
      id: ports.ids(),
      at: ports.clock(),
      namespaceId,
      principal: of.owner,
      traceId,
      command: 'mcp.secret',
      resource: { namespace: ADMIN_PURPOSE, path: ['tools'] },
      about: server,
    };
    if (!(await ports.audit(adminChanged(act))).ok)
      return refused('audit_unavailable', 'the change could not be recorded; try again', true);
    const scope = { ...of, server };
    const kept = value === null ? await access.secrets.forget(scope, name) : await access.secrets.put(scope, name, value);
    if (!kept.ok && kept.error === 'too_many') return refused('mcp_secret_refused', `a server has ${SECRETS_MAX} secrets at most`);
    const all = kept.ok ? await access.secrets.read(scope) : kept;
    return all.ok ? { ok: true, value: { server, secrets: [...all.value.keys()] } } : SECRETS_UNAVAILABLE;
  };

const SECRETS_UNAVAILABLE = refused('mcp_server_unavailable', 'the secrets cannot be kept, or read back, now', true);

const serverOf = async (
  { servers }: ManagePorts,
  of: ReturnType<typeof ownerOf>,
  server: string,
): Promise<Result<McpServer, ProtocolError>> => {
  const read = await servers.read(of);
  if (!read.ok) return read;
  const known = read.value.servers.find((one) => one.server === server);
  return known === undefined ? err(refused('mcp_server_not_found', 'you have no server under this name').error) : ok(known);
};

/** Asks a server for its tools, now and not from memory. */
const toldBy = async (
  ports: ManagePorts,
  of: ReturnType<typeof ownerOf>,
  server: string,
): Promise<Result<ServerTools & { readonly known: McpServer }, ProtocolError>> => {
  const known = await serverOf(ports, of, server);
  if (!known.ok) return known;
  if (ports.access === undefined) return err(placeRefused.error);
  const own: OwnServer = { ...of, server, place: known.value.place };
  const connection = await ports.access.pool.connection(own);
  const told = connection.ok ? await connection.value.tools(true) : connection;
  if (!told.ok) return err(refused(told.error, MCP_REFUSALS[told.error], told.error === 'mcp_server_unavailable').error);
  return ok({ ...told.value, known: known.value });
};

/** All servers of an owner, after a change where one is asked for. */
const shown = async (
  { servers, access }: ManagePorts,
  of: ReturnType<typeof ownerOf>,
  change?: { readonly commandId: string; readonly command: McpCommand },
): Promise<Reply<McpServers>> => {
  const read = await servers.read(of, change);
  if (!read.ok) return { ok: false, error: read.error };
  const views = await Promise.all(
    read.value.servers.map(async ({ server, place, tools, changed }) => {
      const kept = await access?.secrets.read({ ...of, server });
      return {
        server,
        place,
        tools: tools.map(({ name, requirement }) => ({ name: `mcp.${server}.${name}`, requirement, changed: changed.includes(name) })),
        secrets: kept?.ok === true ? [...kept.value.keys()] : [],
      };
    }),
  );
  return { ok: true, value: { servers: views, revision: read.value.revision } };
};
