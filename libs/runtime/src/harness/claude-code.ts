import { PROTOCOL_VERSION } from '@sharedos/contracts';
import { type HarnessVendor, fieldsOf, textOf } from './vendor.ts';

const TURNS_MAX = 24;
/** What it brings of its own: each would act where nobody here decides. */
const BUILT_IN = [
  ...['Bash', 'BashOutput', 'KillShell', 'Read', 'Write', 'Edit', 'MultiEdit', 'NotebookEdit', 'Glob', 'Grep', 'LS'],
  ...['WebFetch', 'WebSearch', 'Task', 'Skill', 'SlashCommand'],
];
const CODE = /^error_[a-z_]{1,100}$/;

/**
 * Claude Code, printing its stream. It takes no other servers than those of our file, and does not ask a person about this one:
 * that is a matter of its prompts, and permits nothing here.
 */
export const claudeCode: HarnessVendor = {
  harness: 'claude-code',
  manifest: { id: 'sharedos.claude-code.mcp', version: '1.0.0', protocolVersion: PROTOCOL_VERSION },
  launch: ({ url, token, serverName, scratch, prompt, model }) => ({
    args: [
      ...['-p', '--output-format', 'stream-json', '--verbose', '--max-turns', String(TURNS_MAX)],
      ...['--mcp-config', `${scratch}/.mcp.json`, '--strict-mcp-config'],
      ...['--allowedTools', `mcp__${serverName}`, '--disallowedTools', BUILT_IN.join(',')],
      ...(model === undefined ? [] : ['--model', model]),
    ],
    files: {
      '.mcp.json': JSON.stringify({ mcpServers: { [serverName]: { type: 'http', url, headers: { Authorization: `Bearer ${token}` } } } }),
    },
    input: prompt,
  }),
  read: (line) => {
    const { type, subtype, is_error, result, message } = fieldsOf(line);
    if (type === 'assistant') {
      const text = textOf(fieldsOf(message)['content']);
      return text === '' ? undefined : { type: 'text', text };
    }
    if (type !== 'result') return undefined;
    // A call to the model that failed ends as `success`, and is one all the same.
    if (subtype === 'success' && is_error !== true) return { type: 'complete', ...(typeof result === 'string' ? { text: result } : {}) };
    return { type: 'failed', ...(typeof subtype === 'string' && CODE.test(subtype) ? { code: subtype } : {}) };
  },
};
