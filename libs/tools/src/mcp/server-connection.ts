import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolResultSchema, ErrorCode, McpError, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MCP_TOOLS_MAX, type JsonObj, type Result, err, ok } from '@sharedos/contracts';
import { z } from 'zod';
import type { McpLimits } from './limits.ts';
import { type ServerTools, readServerTools } from './server-tools.ts';

/** Why a server was not heard. Its own words are never among them. */
export type ServerFailure =
  /** It is not there, does not introduce itself, or has as much to do as it may have: nothing was asked of it. */
  | 'mcp_server_unavailable'
  /** It went away, or said more than is listened to, after it was asked: nobody can tell what it did. */
  | 'mcp_call_interrupted'
  | 'mcp_call_timed_out'
  /** It answered that the call failed. */
  | 'mcp_tool_failed'
  /** What it tells of its tools has no end, or is more than is taken. */
  | 'mcp_list_refused';

export type ServerAnswer = z.infer<typeof CallToolResultSchema>;

const ListPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const PAGES_MAX = 64;

/** One connection to one server. Every wait of it has an end, and what it hears is bounded. */
export class ServerConnection {
  readonly #client: Client;
  readonly #limits: McpLimits;
  readonly #now: () => number;
  #tools: ServerTools | undefined;
  #listing: Promise<Result<ServerTools, ServerFailure>> | undefined;
  #listedAt = 0;
  /** How often it told that its tools have changed. */
  #changes = 0;
  #calls = 0;
  #isOpen = true;

  private constructor(client: Client, limits: McpLimits, now: () => number) {
    this.#client = client;
    this.#limits = limits;
    this.#now = now;
    client.onclose = () => {
      this.#isOpen = false;
    };
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      this.#changes += 1;
      this.#tools = undefined;
    });
  }

  /** @param now Milliseconds on a clock that never goes back. */
  static async open(transport: Transport, limits: McpLimits, now: () => number): Promise<Result<ServerConnection, ServerFailure>> {
    const client = new Client({ name: 'sharedos', version: '0.1.0' }, { capabilities: {} });
    const connection = new ServerConnection(client, limits, now);
    try {
      await client.connect(transport, { timeout: limits.connectMs, maxTotalTimeout: limits.connectMs });
      return ok(connection);
    } catch {
      void connection.close();
      await transport.close().catch(() => undefined);
      return err('mcp_server_unavailable');
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isBusy(): boolean {
    return this.#calls > 0 || this.#listing !== undefined;
  }

  /** What it says of its tools: as it said it lately, where it has not told of a change since. */
  async tools(fresh = false): Promise<Result<ServerTools, ServerFailure>> {
    const known = this.#tools;
    if (!fresh && known !== undefined && this.#now() - this.#listedAt < this.#limits.verifiedMs) return ok(known);
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  async call(name: string, args: JsonObj, signal: AbortSignal): Promise<Result<ServerAnswer, ServerFailure>> {
    if (!this.#isOpen || this.#calls >= this.#limits.callsMax) return err('mcp_server_unavailable');
    this.#calls += 1;
    try {
      const options = { signal, timeout: this.#limits.callMs, maxTotalTimeout: this.#limits.callMs };
      return ok(
        await this.#client.request({ method: 'tools/call', params: { name, arguments: { ...args } } }, CallToolResultSchema, options),
      );
    } catch (error) {
      signal.throwIfAborted();
      // By the connection and not by the code of the error: servers use the same number for errors of their own.
      if (!(error instanceof McpError) || !this.#isOpen) return err('mcp_call_interrupted');
      return err(error.code === ErrorCode.RequestTimeout ? 'mcp_call_timed_out' : 'mcp_tool_failed');
    } finally {
      this.#calls -= 1;
    }
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#client.close().catch(() => undefined);
  }

  async #list(): Promise<Result<ServerTools, ServerFailure>> {
    const signal = AbortSignal.timeout(this.#limits.listMs);
    const listed: unknown[] = [];
    let cursor: string | undefined;
    const [listedAt, changes] = [this.#now(), this.#changes];
    try {
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const params = cursor === undefined ? {} : { cursor };
        const told = await this.#client.request({ method: 'tools/list', params }, ListPage, { signal, timeout: this.#limits.listMs });
        listed.push(...told.tools);
        if (listed.length > MCP_TOOLS_MAX) return err('mcp_list_refused');
        if (told.nextCursor === undefined) {
          const tools = readServerTools(listed);
          // Word of a change may come between the pages: then this is what it was, and is not what it is.
          if (changes === this.#changes) [this.#tools, this.#listedAt] = [tools, listedAt];
          return ok(tools);
        }
        if (told.nextCursor === cursor) return err('mcp_list_refused');
        cursor = told.nextCursor;
      }
      return err('mcp_list_refused');
    } catch {
      return err('mcp_server_unavailable');
    }
  }
}
