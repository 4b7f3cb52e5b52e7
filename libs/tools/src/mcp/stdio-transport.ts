import { type ChildProcess, spawn } from 'node:child_process';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { McpFlood, type McpLimits } from './limits.ts';

export interface ServerProcess {
  readonly command: string;
  readonly args: readonly string[];
  /** All of it: nothing of the environment of this process is passed on by itself. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const ENDED_BY_ITSELF_MS = 500;
const TERMINATED_MS = 1_500;
const NEWLINE = 0x0a;

/**
 * A server as a process, a message a line. It never holds more of a line, and never reads more between two messages of ours, than the limits
 * say; the process leads a group of its own, so that what it started ends with it. Its standard error is not read: it may hold secrets.
 */
export class StdioServerTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #server: ServerProcess;
  readonly #limits: McpLimits;
  #child: ChildProcess | undefined;
  #gone: Promise<void> = Promise.resolve();
  #line: Buffer[] = [];
  #lineBytes = 0;
  #unaskedBytes = 0;
  #unaskedMessages = 0;
  #isClosed = false;

  constructor(server: ServerProcess, limits: McpLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#server;
    const child = spawn(command, [...args], { env: { ...env }, cwd, stdio: ['pipe', 'pipe', 'ignore'], shell: false, detached: true });
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      child.once('close', () => resolve());
      child.once('error', () => resolve());
    });
    void this.#gone.then(() => this.#closed());
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.stdout.on('error', (error) => this.onerror?.(error));
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (stdin?.writable !== true) throw new Error('the server has ended');
    // A request of ours alone: an answer is what any number of pings from the server would bring forth.
    if ('method' in message && 'id' in message) [this.#unaskedBytes, this.#unaskedMessages] = [0, 0];
    // Not waited for: a server that reads nothing would hold whoever sends beyond every deadline.
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    child.stdout?.removeAllListeners('data').resume();
    child.stdin?.end();
    for (const [signal, ms] of [
      ['SIGTERM', ENDED_BY_ITSELF_MS],
      ['SIGKILL', TERMINATED_MS],
    ] as const) {
      if (await endedWithin(this.#gone, ms)) break;
      signalGroup(child, signal);
    }
    // What it started may outlive it.
    signalGroup(child, 'SIGKILL');
    await endedWithin(this.#gone, TERMINATED_MS);
  }

  #read(chunk: Buffer): void {
    this.#unaskedBytes += chunk.byteLength;
    if (this.#unaskedBytes > this.#limits.unaskedBytesMax) return this.#giveUp('it sends without being asked');
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#line.push(chunk.subarray(from, end));
      this.#lineBytes += end - from;
      if (this.#lineBytes > this.#limits.messageBytesMax) return this.#giveUp('its message is too long');
      this.#deliver(Buffer.concat(this.#line).toString('utf8'));
      [this.#line, this.#lineBytes, from] = [[], 0, end + 1];
      if (this.#child === undefined) return undefined;
    }
    if (from < chunk.byteLength) {
      this.#line.push(chunk.subarray(from));
      this.#lineBytes += chunk.byteLength - from;
    }
    return this.#lineBytes > this.#limits.messageBytesMax ? this.#giveUp('its message is too long') : undefined;
  }

  #deliver(line: string): void {
    this.#unaskedMessages += 1;
    if (this.#unaskedMessages > this.#limits.unaskedMessagesMax) return this.#giveUp('it sends without being asked');
    let message: JSONRPCMessage;
    try {
      message = JSONRPCMessageSchema.parse(JSON.parse(line)) as JSONRPCMessage;
    } catch {
      // Servers print what is no message; it counts against the limits and is nothing else.
      return undefined;
    }
    this.onmessage?.(message);
    return undefined;
  }

  #giveUp(why: string): undefined {
    this.onerror?.(new McpFlood(why));
    // What it sends until it has gone is not even read into memory, and nobody waits for it to go.
    void this.close();
    this.#closed();
    return undefined;
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}

const endedWithin = async (gone: Promise<void>, ms: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const ended = await Promise.race([gone.then(() => true), late]);
  clearTimeout(timer);
  return ended;
};

const signalGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Nobody of it is left.
  }
};
