import { type Json, parseJsonText } from '@sharedos/contracts';
import { linesOf } from '../mcp/lines.ts';
import { type HarnessCommand, startHarness } from './harness-process.ts';

/** Frames to and from a harness that is driven: one at a time, in order. */
export interface FrameChannel {
  send(frame: Json): void;
  /** The next frame, or word that one was past the limit; `undefined` when there are no more. */
  next(): Promise<{ readonly frame: Json } | { readonly tooLong: true } | undefined>;
  close(): Promise<void>;
}

const FRAME_LENGTH_MAX = 1024 * 1024;

/** A program that reads and prints a frame a line. Lines that are no JSON are not frames. @throws what {@link startHarness} throws. */
export const processChannel = async (command: HarnessCommand, graceMs = 5_000): Promise<FrameChannel> => {
  const process = await startHarness(command);
  const lines = linesOf(process.output, FRAME_LENGTH_MAX);
  return {
    send: (frame) => process.write(`${JSON.stringify(frame)}\n`),
    next: async () => {
      for (;;) {
        const { done, value: line } = await lines.next();
        if (done === true) return undefined;
        if ('tooLong' in line) return line;
        const frame = parseJsonText(line.text);
        if (frame.ok) return { frame: frame.value };
      }
    },
    close: () => {
      process.endInput();
      return process.stop(graceMs);
    },
  };
};

/** What a harness once said, said again: whatever it is answered, the next frame is the next of the transcript. */
export const transcriptChannel = (frames: readonly Json[]): FrameChannel & { readonly sent: readonly Json[] } => {
  const left = [...frames];
  const sent: Json[] = [];
  return {
    sent,
    send: (frame) => void sent.push(frame),
    next: async () => {
      const frame = left.shift();
      return frame === undefined ? undefined : { frame };
    },
    close: async () => undefined,
  };
};
