import type { Readable, Writable } from 'node:stream';
import { PAYLOAD_BYTES_MAX } from '@sharedos/contracts';
import type { McpBridge } from './bridge.ts';
import { rpcError } from './json-rpc.ts';
import { linesOf } from './lines.ts';

/**
 * Serves a bridge over a pair of streams: a message a line, answered in the order they came; blank lines are skipped. Resolves when
 * the input has ended, or nobody reads the output any more.
 */
export const serveMcpStdio = async (bridge: McpBridge, input: Readable, output: Writable): Promise<void> => {
  const gone = new Promise<void>((resolve) => {
    output.once('error', () => resolve());
    output.once('close', () => resolve());
  });
  const write = async (message: object): Promise<void> => {
    if (!output.write(`${JSON.stringify(message)}\n`)) await Promise.race([new Promise((resolve) => output.once('drain', resolve)), gone]);
  };
  const serve = async (): Promise<void> => {
    // One after another: a line is not read before the one above it is answered, so that nothing waits here without a bound.
    for await (const line of linesOf(input, PAYLOAD_BYTES_MAX)) {
      if ('tooLong' in line) {
        await write(rpcError(null, 'parse'));
        continue;
      }
      if (line.text.trim() === '') continue;
      const answer = await bridge.handle(line.text);
      if (answer.kind === 'answered') await write(answer.answer);
    }
  };
  await Promise.race([serve(), gone]);
};
