// A coding command line tool for tests: it reads its connection as the vendor it plays does, calls tools over MCP with the official
// client, and prints that vendor's frames. What it does is in what it is told: `{ "calls": [...], "end": "complete" }`.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

interface Script {
  readonly calls?: readonly { readonly name: string; readonly arguments?: Record<string, unknown> }[];
  readonly end: string;
}
interface Connection {
  readonly url: string;
  readonly authorization: string;
}
interface Played {
  readonly told: () => Promise<string>;
  readonly connection: () => Connection;
  readonly text: (text: string) => unknown;
  readonly complete: (text: string) => unknown;
  readonly failed: unknown;
}

const [, , vendor = '', ...argv] = process.argv;
const after = (flag: string): string => argv[argv.indexOf(flag) + 1] ?? '';

const wholeInput = async (): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};
const firstLine = (): Promise<string> =>
  new Promise((resolve) => {
    let text = '';
    process.stdin.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) resolve(text.split('\n')[0] ?? '');
    });
  });
const servers = (path: string): Connection => {
  const { mcpServers } = JSON.parse(readFileSync(path, 'utf8')) as {
    mcpServers: Record<string, { url: string; headers: { Authorization: string } }>;
  };
  const { url, headers } = mcpServers['sharedos'] ?? { url: '', headers: { Authorization: '' } };
  return { url, authorization: headers.Authorization };
};

const PLAYED: Readonly<Record<string, Played>> = {
  codex: {
    told: wholeInput,
    connection: () => {
      const file = readFileSync(`${process.env['CODEX_HOME']}/config.toml`, 'utf8');
      const url =
        /^mcp_servers\.sharedos\.url="(.*)"$/.exec(argv.find((given) => given.startsWith('mcp_servers.sharedos.url')) ?? '')?.[1] ?? '';
      return { url, authorization: /Authorization = "([^"]*)"/.exec(file)?.[1] ?? '' };
    },
    text: (text) => ({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text } }),
    complete: () => ({ type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 1 } }),
    failed: { type: 'turn.failed', error: { message: 'secret' } },
  },
  'claude-code': {
    told: wholeInput,
    connection: () => servers(after('--mcp-config')),
    text: (text) => ({ type: 'assistant', message: { role: 'assistant', content: [{ type: 'text', text }] } }),
    complete: (result) => ({ type: 'result', subtype: 'success', is_error: false, result }),
    failed: { type: 'result', subtype: 'error_max_turns', is_error: true, errors: ['secret'] },
  },
  pi: {
    told: async () => readFileSync((argv.at(-1) ?? '').slice(1), 'utf8'),
    connection: () => servers('.mcp.json'),
    text: (text) => ({ type: 'message_end', message: { role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' } }),
    complete: () => ({ type: 'agent_end', messages: [{ role: 'assistant', content: [], stopReason: 'stop' }] }),
    failed: { type: 'agent_end', messages: [{ role: 'assistant', content: [], stopReason: 'error', errorMessage: 'secret' }] },
  },
  deepseek: {
    told: async () => (JSON.parse(await firstLine()) as { text: string }).text,
    connection: () => {
      const patch = JSON.parse(readFileSync(after('--patch'), 'utf8')) as {
        plugins: { insert: { settings: { servers: Record<string, { url: string; headers: { Authorization: string } }> } }[] };
      };
      const { url = '', headers } = patch.plugins.insert[0]?.settings.servers['sharedos'] ?? {};
      return { url, authorization: headers?.Authorization ?? '' };
    },
    text: (text) => ({ type: 'message', text }),
    complete: () => ({ type: 'completed' }),
    failed: { type: 'failed', code: 'context_too_long', text: 'secret' },
  },
};

const played = PLAYED[vendor];
if (played === undefined) throw new Error(`nobody plays ${vendor}`);
const say = (frame: unknown): void => void process.stdout.write(`${JSON.stringify(frame)}\n`);
const script = JSON.parse(await played.told()) as Script;

// Noise as real ones make it: what is no frame, and a tool call of its own channel.
process.stdout.write('starting…\n');
say({ type: 'tool_call', name: 'files.read', arguments: {} });

if ((script.calls ?? []).length > 0) {
  const { url, authorization } = played.connection();
  const client = new Client({ name: vendor, version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } }) as never);
  await client.listTools();
  for (const call of script.calls ?? []) {
    const { content, isError } = await client.callTool({
      name: call.name,
      ...(call.arguments === undefined ? {} : { arguments: call.arguments }),
    });
    say(played.text(`${isError === true ? 'refused' : 'did'} ${(content as { text: string }[])[0]?.text ?? ''}`));
  }
  await client.close();
}

const never = (): Promise<never> => new Promise(() => setInterval(() => undefined, 60_000));
switch (script.end) {
  case 'complete':
    say(played.complete('all done'));
    break;
  case 'failed':
    say(played.failed);
    break;
  case 'failed-without-code':
    say({ type: 'failed' });
    break;
  case 'exit':
    say(played.text('that is all'));
    process.exit(0);
  case 'exit-3':
    process.exit(3);
  case 'killed':
    process.kill(process.pid, 'SIGKILL');
    break;
  case 'linger':
    say(played.complete('done'));
    await never();
    break;
  case 'hang':
    say(played.text(`pid ${process.pid}`));
    await never();
    break;
  case 'hang-deaf':
    process.on('SIGTERM', () => undefined);
    say(played.text(`pid ${process.pid}`));
    await never();
    break;
  case 'leave-child': {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60000)'], { stdio: ['ignore', 'inherit', 'ignore'] });
    say(played.text(`pid ${child.pid}`));
    process.exit(0);
  }
  case 'until-input-ends':
    process.stdin.resume();
    await new Promise((resolve) => process.stdin.once('end', resolve));
    say(played.text('nobody speaks any more'));
    process.exit(0);
  case 'long-line':
    process.stdout.write('x'.repeat(2 * 1024 * 1024));
    await never();
    break;
  case 'much-text':
    for (let at = 0; at < 40; at += 1) say(played.text('x'.repeat(64 * 1024)));
    await never();
    break;
  case 'look-around': {
    const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    const scratch = process.env['TMPDIR'] ?? '';
    const files = readdirSync(scratch, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    say(
      played.text(
        JSON.stringify({
          env: Object.keys(process.env)
            .filter((name) => !name.startsWith('__'))
            .toSorted(),
          argv,
          cwd: process.cwd() === `${scratch}/work`,
          modes: [mode(scratch), ...new Set(files.map((file) => mode(`${file.parentPath}/${file.name}`)))],
          scratch,
          authorization: played.connection().authorization,
        }),
      ),
    );
    say(played.complete(''));
    break;
  }
  default:
    throw new Error(`no end is called ${script.end}`);
}
process.stdin.destroy();
