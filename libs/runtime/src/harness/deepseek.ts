import { PROTOCOL_VERSION } from '@sharedos/contracts';
import { type HarnessVendor, fieldsOf } from './vendor.ts';

const CODE = /^[a-z][a-z0-9_]{0,127}$/;

/**
 * DeepSeek Harness, with its plugin of an MCP client, which has to be installed beforehand. The patch *inserts* that plugin: a bare
 * entry would only override settings of one that is already in the profile, and where there is none the harness would start
 * without its tools and not say so. It is a session: told its task on its input, which then stays open.
 */
export const deepseek: HarnessVendor = {
  harness: 'deepseek',
  manifest: { id: 'sharedos.deepseek.mcp', version: '1.0.0', protocolVersion: PROTOCOL_VERSION },
  session: true,
  launch: ({ url, token, serverName, scratch, prompt, model }) => ({
    args: ['run', '--output', 'jsonl', '--patch', `${scratch}/patch.json`, ...(model === undefined ? [] : ['--model', model])],
    files: {
      'patch.json': JSON.stringify({
        plugins: {
          insert: [{ name: 'mcp-client', settings: { servers: { [serverName]: { url, headers: { Authorization: `Bearer ${token}` } } } } }],
        },
      }),
    },
    input: `${JSON.stringify({ type: 'user', text: prompt })}\n`,
  }),
  read: (line) => {
    const { type, text, code } = fieldsOf(line);
    switch (type) {
      case 'message':
        return typeof text === 'string' ? { type: 'text', text } : undefined;
      case 'completed':
        return { type: 'complete', ...(typeof text === 'string' ? { text } : {}) };
      case 'failed':
        return { type: 'failed', ...(typeof code === 'string' && CODE.test(code) ? { code } : {}) };
      default:
        return undefined;
    }
  },
};
