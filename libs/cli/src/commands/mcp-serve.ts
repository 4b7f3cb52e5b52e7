import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { type Terminal, contextOf, invocationOf, speaker } from '../command-line.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';

interface ServeOptions {
  readonly agent: string;
  readonly purpose: string;
}

const SERVER = fileURLToPath(new URL('../../../../services/gateway/src/stdio.ts', import.meta.url));

export const serveCommand = (terminal: Terminal): Command =>
  new Command('serve')
    .description(
      'Be an MCP server over standard input and output: the tools that an agent of yours may use, each call decided as it comes.',
    )
    .option('--agent <id>', 'the agent that uses the tools; it is registered with the runtime "remote"', 'scout')
    .option('--purpose <purpose>', 'what the tools are used for', 'use tools from a desktop client')
    .addHelpText(
      'after',
      `
An agent belongs to one such process at a time.

Example, once:
  $ sharedos agent register scout --authority human:alice --runtime remote
and in the settings of a desktop client:
  "sharedos": {
    "command": "/path/to/checkout/node_modules/.bin/sharedos",
    "args": ["mcp", "--context", "/path/to/checkout/.sharedos/context.json"]
  }`,
    )
    .action(async ({ agent, purpose }: ServeOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const context = await contextOf(invocation);
      const { principal, user, password } = speaker(context, invocation.options.as);
      const agents = speaker(context, `agent:${agent}`);
      if (agents.principal.kind !== 'agent') throw usageFailure(`"${agent}" is no agent`);
      if (!existsSync(SERVER)) throw new CommandFailure(EXIT.unavailable, 'no_gateway', 'the gateway is not installed beside this command');
      const identity = {
        claims: { sub: 'stdio' },
        namespaceId: context.namespaceId,
        principal,
        credential: { user, password },
        purpose,
        agent: { address: agents.principal, credential: { user: agents.user, password: agents.password } },
      };
      const believing = context.caFile === undefined ? {} : { SHAREDOS_NATS_CA_FILE: context.caFile };
      const env = { ...terminal.env, SHAREDOS_NATS_URL: context.natsUrl, ...believing };
      // The identity goes through a pipe of its own: what is in an environment or an argument, others may read.
      const child = spawn(process.execPath, [SERVER], { stdio: ['inherit', 'inherit', 'inherit', 'pipe'], env });
      (child.stdio[3] as Writable).end(JSON.stringify(identity));
      const code = await endOf(child, terminal.signal);
      if (code !== 0) throw new CommandFailure(EXIT.unavailable, 'server_ended', 'the MCP server could not go on; what it said is above');
    });

/** Our client ends us by closing our input, which is the child's too; a signal to us alone is passed on. */
const endOf = (child: ChildProcess, signal: AbortSignal | undefined): Promise<number> =>
  new Promise((resolve) => {
    const end = (): void => void child.kill('SIGTERM');
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
    for (const name of signals) process.on(name, end);
    signal?.addEventListener('abort', end, { once: true });
    child.once('error', () => resolve(1));
    child.once('close', (code) => {
      for (const name of signals) process.off(name, end);
      resolve(code ?? 0);
    });
  });
