import type { ExecutionResult, Json, JsonObj } from '@sharedos/contracts';
import { printable, table } from './table.ts';

const OUTPUT_SHOWN = 2_000;

/** How a turn ended, and what its calls came to. */
export const resultText = (result: ExecutionResult): string => {
  const code = 'error' in result && result.error !== undefined ? ` (${result.error.code})` : '';
  const head = `${printable(result.executionId)} ${result.status}${code}, trace ${printable(result.traceId)}\n`;
  if (result.status !== 'succeeded') return head;
  const calls = scriptedCalls(result.output);
  if (calls === undefined) return `${head}${shown(result.output)}\n`;
  const lines = table(
    ['', 'CALL', 'STATUS', 'CODE'],
    calls.map(({ tool, status, code: reason }) => [status === 'succeeded' ? '✓' : '✗', tool, status, reason]),
  );
  const outputs = calls.filter(({ output }) => output !== undefined).map(({ tool, output }) => `\n${printable(tool)}\n${shown(output)}\n`);
  return head + lines + outputs.join('');
};

export interface AnsweredCall {
  readonly tool: string;
  readonly status: string;
  readonly code?: string;
  readonly output?: Json;
}

export const scriptedCalls = (output: Json): readonly AnsweredCall[] | undefined => {
  const calls = typeof output === 'object' && output !== null && !Array.isArray(output) ? (output as JsonObj)['calls'] : undefined;
  if (!Array.isArray(calls)) return undefined;
  const answered = calls as readonly AnsweredCall[];
  return answered.every(
    (call) => typeof call === 'object' && call !== null && typeof call.tool === 'string' && typeof call.status === 'string',
  )
    ? answered
    : undefined;
};

const shown = (output: Json | undefined): string => {
  const text = JSON.stringify(output, null, 2);
  // Line breaks of the indentation are ours; every other control character is escaped by JSON or here.
  const safe = text.split('\n').map(printable).join('\n');
  return safe.length <= OUTPUT_SHOWN ? safe : `${safe.slice(0, OUTPUT_SHOWN)}\n… ${safe.length - OUTPUT_SHOWN} more characters: use --json`;
};
