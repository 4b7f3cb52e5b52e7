import { PROTOCOL_VERSION } from '@sharedos/contracts';
import { type HarnessVendor, fieldsOf } from './vendor.ts';

/** A text as TOML: a basic string is written as JSON writes one. */
const toml = (text: string): string => JSON.stringify(text);

/**
 * Codex, run once without a terminal. Its settings are overrides on the command line, but for the token: that is in the file of a
 * home folder of its own. The server is required, so that it fails instead of starting without its tools, and is the only one
 * whose calls it does not ask a person about: whether they are permitted is decided here.
 */
export const codex: HarnessVendor = {
  harness: 'codex',
  manifest: { id: 'sharedos.codex.mcp', version: '1.0.0', protocolVersion: PROTOCOL_VERSION },
  launch: ({ url, token, serverName, scratch, prompt, model }) => {
    const server = `mcp_servers.${serverName}`;
    const overrides = [
      `${server}.url=${toml(url)}`,
      `${server}.required=true`,
      `${server}.default_tools_approval_mode="approve"`,
      'approval_policy="never"',
      'sandbox_mode="read-only"',
    ];
    return {
      args: [
        'exec',
        '--json',
        '--skip-git-repo-check',
        ...(model === undefined ? [] : ['--model', model]),
        ...overrides.flatMap((override) => ['-c', override]),
        '-',
      ],
      files: { 'codex/config.toml': `[${server}]\nurl = ${toml(url)}\nhttp_headers = { Authorization = ${toml(`Bearer ${token}`)} }\n` },
      env: { CODEX_HOME: `${scratch}/codex` },
      input: prompt,
    };
  },
  read: (line) => {
    const { type, item } = fieldsOf(line);
    switch (type) {
      case 'item.completed': {
        const { type: kind, text } = fieldsOf(item);
        return kind === 'agent_message' && typeof text === 'string' ? { type: 'text', text } : undefined;
      }
      case 'turn.completed':
        return { type: 'complete' };
      case 'turn.failed':
        return { type: 'failed' };
      default:
        return undefined;
    }
  },
};
