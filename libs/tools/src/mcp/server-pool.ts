import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Address, type McpPlace, type Result, err, hashOf } from '@sharedos/contracts';
import { ownerFolder } from '../confinement/owner-folder.ts';
import { httpServerTransport } from './http-transport.ts';
import { MCP_LIMITS, type McpLimits } from './limits.ts';
import { type OperatorList, type Program, isAllowed, isSecretOf } from './operator-list.ts';
import type { SecretStore } from './secret-store.ts';
import { ServerConnection, type ServerFailure } from './server-connection.ts';
import { StdioServerTransport } from './stdio-transport.ts';

export interface ServerPoolOptions {
  readonly list: OperatorList;
  readonly secrets: SecretStore;
  /** Where processes keep what they keep, a folder for each owner and server. */
  readonly folder?: string;
  readonly limits?: Partial<McpLimits>;
  /** Milliseconds on a clock that never goes back. */
  readonly now?: () => number;
}

/** A server of an owner, and where it is. */
export interface OwnServer {
  readonly namespaceId: string;
  readonly owner: Address;
  readonly server: string;
  readonly place: McpPlace;
}

interface Kept {
  readonly owner: string;
  readonly opening: Promise<Result<ServerConnection, ServerFailure>>;
  connection?: ServerConnection;
  idle?: NodeJS.Timeout;
}

/**
 * Connections to the servers of owners, made when they are first used and closed when they are not. Never one for two owners: each has its
 * own process, its own folder and its own secrets, and a change of any of these is another connection.
 */
export class ServerPool {
  readonly #options: ServerPoolOptions;
  readonly #limits: McpLimits;
  readonly #now: () => number;
  readonly #kept = new Map<string, Kept>();
  /** Since when a server could not be had. Whoever asks again at once must not start a process each time. */
  readonly #failed = new Map<string, number>();
  #isStopped = false;

  constructor(options: ServerPoolOptions) {
    this.#options = options;
    this.#limits = { ...MCP_LIMITS, ...options.limits };
    this.#now = options.now ?? (() => performance.now());
  }

  async connection(own: OwnServer): Promise<Result<ServerConnection, ServerFailure>> {
    const { list, secrets } = this.#options;
    // The operator may have taken an entry away since it was added.
    if (this.#isStopped || !isAllowed(list, own.place)) return err('mcp_server_unavailable');
    const known = await secrets.read(own);
    if (!known.ok) return err('mcp_server_unavailable');
    const usable = [...known.value].filter(([name]) => isSecretOf(list, own.place, name));
    const key = hashOf([own.namespaceId, own.owner, own.server, own.place, usable]);
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.connection?.isOpen !== false) {
      this.#used(key, kept);
      return kept.opening;
    }
    if (this.#now() - (this.#failed.get(key) ?? -Infinity) < this.#limits.retryMs) return err('mcp_server_unavailable');
    const owner = hashOf([own.namespaceId, own.owner]);
    if (!this.#hasRoom(owner)) return err('mcp_server_unavailable');
    const made: Kept = { owner, opening: this.#open(own, new Map(usable)) };
    this.#kept.set(key, made);
    const opened = await made.opening;
    if (opened.ok) {
      made.connection = opened.value;
      this.#failed.delete(key);
      this.#used(key, made);
      if (this.#isStopped) await opened.value.close();
    } else {
      if (this.#kept.get(key) === made) this.#kept.delete(key);
      if (this.#failed.size >= FAILURES_MAX) this.#failed.clear();
      this.#failed.set(key, this.#now());
    }
    return opened;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const all = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.all(
      all.map(async ({ opening, idle }) => {
        clearTimeout(idle);
        const opened = await opening;
        if (opened.ok) await opened.value.close();
      }),
    );
  }

  async #open(own: OwnServer, secrets: ReadonlyMap<string, string>): Promise<Result<ServerConnection, ServerFailure>> {
    try {
      return await ServerConnection.open(await this.#transport(own, secrets), this.#limits, this.#now);
    } catch {
      // No folder could be made, or no process: what exactly may name secrets, and a caller could do nothing with it.
      return err('mcp_server_unavailable');
    }
  }

  async #transport({ namespaceId, owner, server, place }: OwnServer, secrets: ReadonlyMap<string, string>): Promise<Transport> {
    if (place.kind === 'http') return httpServerTransport(place.url, Object.fromEntries(secrets), this.#limits);
    const program = this.#options.list.processes.get(place.process) as Program;
    const root = this.#options.folder;
    const folder = root === undefined ? undefined : join(root, ...ownerFolder(namespaceId, owner), server);
    if (folder !== undefined) await mkdir(folder, { recursive: true, mode: 0o700 });
    const filled = (text: string): string => {
      if (!text.includes(FOLDER)) return text;
      if (folder === undefined) throw new Error('a program needs a folder, and none is configured');
      return text.replaceAll(FOLDER, folder);
    };
    const { PATH = '' } = process.env;
    return new StdioServerTransport(
      {
        command: program.command,
        args: program.args.map(filled),
        env: {
          PATH,
          HOME: folder ?? tmpdir(),
          ...Object.fromEntries(Object.entries(program.env).map(([name, value]) => [name, filled(value)])),
          ...Object.fromEntries(secrets),
        },
        cwd: folder ?? tmpdir(),
      },
      this.#limits,
    );
  }

  /** Starts the time of idleness anew. */
  #used(key: string, kept: Kept): void {
    clearTimeout(kept.idle);
    // Last used comes last, so the first one that is idle is the one to give up.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    kept.idle = setTimeout(() => {
      if (kept.connection?.isBusy === true) this.#used(key, kept);
      else this.#giveUp(key, kept);
    }, this.#limits.idleMs);
    kept.idle.unref();
  }

  /** Makes room for one more, if need be by giving up the one of them that was not used for longest. */
  #hasRoom(owner: string): boolean {
    for (const [key, kept] of this.#kept) if (kept.connection?.isOpen === false) this.#giveUp(key, kept);
    const all = [...this.#kept];
    const mine = all.filter(([, kept]) => kept.owner === owner);
    const { connectionsMax, connectionsOfOwnerMax } = this.#limits;
    if (mine.length >= connectionsOfOwnerMax) return this.#gaveUpOneOf(mine);
    return all.length < connectionsMax || this.#gaveUpOneOf(all);
  }

  #gaveUpOneOf(kept: readonly (readonly [string, Kept])[]): boolean {
    const idle = kept.find(([, { connection }]) => connection !== undefined && !connection.isBusy);
    if (idle !== undefined) this.#giveUp(...idle);
    return idle !== undefined;
  }

  #giveUp(key: string, kept: Kept): void {
    clearTimeout(kept.idle);
    if (this.#kept.get(key) === kept) this.#kept.delete(key);
    void kept.connection?.close();
  }
}

const FOLDER = '{folder}';
const FAILURES_MAX = 1_024;
