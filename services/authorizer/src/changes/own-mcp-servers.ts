import type { Delivery } from '@sharedos/bus';
import { type Address, type AuthorityMcp, type McpServersAt, type Reply, hashOf, ok, refused } from '@sharedos/contracts';
import { type McpServersState, mcpServers } from '@sharedos/kernel';
import { administer } from './administer.ts';
import { mcpStream, readNamespaceEvent } from '../fold/namespace-events.ts';
import type { CommandPorts } from '../ports.ts';
import { runStreamCommand } from './stream-command.ts';
import { upToDate } from '../turns/up-to-date.ts';

/** Whoever sees that a server is not any more what was approved. */
const EXECUTOR: Address = { kind: 'service', serviceId: 'tool-executor' };

/**
 * The MCP servers of an owner, after a change where one is asked for. They are the owner's own, so it needs no grant to change them; the
 * service that asks names the principal whom the broker let publish its request, and has looked at the operator's list.
 */
export const ownMcpServers = (ports: CommandPorts) => {
  const hashes = new WeakMap<McpServersState, string>();
  const hashAt = (state: McpServersState): string => {
    const known = hashes.get(state) ?? hashOf(state.servers);
    hashes.set(state, known);
    return known;
  };

  const read = async (namespaceId: string, owner: Address, known: string | undefined): Promise<Reply<McpServersAt>> => {
    const here = await upToDate(ports);
    if (here === undefined) return refused('authority_unavailable', 'this replica could not catch up with the log in time', true);
    const state = ports.fold.namespaces.mcpServersAt(namespaceId, owner, here.position);
    const hash = hashAt(state);
    return { ok: true, value: { hash, ...(hash === known ? {} : { servers: [...state.servers] }), revision: here.revision } };
  };

  return async (body: AuthorityMcp, from: Delivery): Promise<Reply<McpServersAt>> => {
    const { owner, known, change } = body;
    const { namespaceId } = from;
    if (change === undefined) return read(namespaceId, owner, known);
    const { commandId, command } = change;
    const delivery: Delivery = { ...from, principal: command.type === 'ReportMcpToolsChanged' ? EXECUTOR : owner };
    const about = { area: 'tools', name: command.server } as const;
    const changed = await administer<true>(ports, delivery, { commandId, about, body }, async (by) => {
      const asked = { stream: mcpStream(namespaceId, owner), decider: mcpServers, parseEvent: readNamespaceEvent('mcp') };
      const ran = await runStreamCommand(ports.store, delivery, by, asked, { ...command, owner });
      return ran.ok ? ok({ value: true, acts: ran.value.acts }) : ran;
    });
    return changed.ok ? read(namespaceId, owner, known) : changed;
  };
};
