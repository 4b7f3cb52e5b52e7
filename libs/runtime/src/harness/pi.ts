import { type Json, PROTOCOL_VERSION } from '@sharedos/contracts';
import { type HarnessVendor, fieldsOf, textOf } from './vendor.ts';

/**
 * Pi, printing its events. It has no MCP client of its own: an extension that the host chose brings one, reads `.mcp.json` in the
 * working folder and offers its tools behind one proxy. What the manifest says of that goes on every result.
 *
 * @param extension Path of that extension.
 */
export const pi = (extension: string): HarnessVendor => ({
  harness: 'pi',
  manifest: {
    id: 'sharedos.pi.mcp',
    version: '1.0.0',
    protocolVersion: PROTOCOL_VERSION,
    metadata: { mcpSupport: 'extension' },
  },
  launch: ({ url, token, serverName, scratch, prompt, model }) => ({
    args: [
      ...['--print', '--mode', 'json', '--no-session', '--no-builtin-tools', '--no-extensions', '--extension', extension],
      ...(model === undefined ? [] : ['--model', model]),
      // A file and not the text itself: what a turn is about is nobody's who lists processes.
      `@${scratch}/prompt.md`,
    ],
    files: {
      'work/.mcp.json': JSON.stringify({ mcpServers: { [serverName]: { url, headers: { Authorization: `Bearer ${token}` } } } }),
      'prompt.md': prompt,
    },
  }),
  read: (line) => {
    const { type, message, messages } = fieldsOf(line);
    if (type === 'message_end') {
      const { role, content } = fieldsOf(message);
      const text = role === 'assistant' ? textOf(content) : '';
      return text === '' ? undefined : { type: 'text', text };
    }
    if (type !== 'agent_end') return undefined;
    const last = fieldsOf(Array.isArray(messages) ? (messages as readonly Json[]).at(-1) : undefined);
    return last['stopReason'] === 'error' || last['stopReason'] === 'aborted' ? { type: 'failed' } : { type: 'complete' };
  },
});
