import { StringDecoder } from 'node:string_decoder';
import type { Readable } from 'node:stream';

/** One line of a stream, or word that it was longer than may be. */
export type Line = { readonly text: string } | { readonly tooLong: true };

/**
 * The lines of a stream, as they come. A line past the limit is dropped as it arrives and told once, so that what is held never
 * grows beyond it. The last one needs no line break. Who stops reading has the stream as it stands.
 *
 * @param lengthMax In UTF-16 units.
 */
export async function* linesOf(stream: Readable, lengthMax: number): AsyncGenerator<Line> {
  const decoder = new StringDecoder('utf8');
  /** The line that has not ended yet, in the pieces it came in. */
  let pieces: string[] = [];
  let length = 0;
  let dropping = false;
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const parts = decoder.write(chunk).split('\n');
    const unended = parts.pop() ?? '';
    for (const part of parts) {
      const line = pieces.join('') + part;
      if (!dropping) yield line.length > lengthMax ? { tooLong: true } : { text: line.endsWith('\r') ? line.slice(0, -1) : line };
      [pieces, length, dropping] = [[], 0, false];
    }
    if (dropping) continue;
    pieces.push(unended);
    length += unended.length;
    if (length <= lengthMax) continue;
    yield { tooLong: true };
    [pieces, length, dropping] = [[], 0, true];
  }
  const rest = pieces.join('') + decoder.end();
  if (rest !== '' && !dropping) yield { text: rest };
}
