import { type Json, RESULT_BYTES_MAX, parseJsonText } from '@sharedos/contracts';
import { linesOf } from '../mcp/lines.ts';
import type { Timers } from '../timers.ts';
import type { HarnessProcess } from './harness-process.ts';
import type { HarnessVendor } from './vendor.ts';

/** How a harness came to its end, before that is an outcome of the turn. */
export type HarnessEnding =
  | { readonly type: 'complete'; readonly text: string }
  | { readonly type: 'fail'; readonly code: string; readonly retryable?: true };

/** Of one run: characters of a line, lines that are frames, and characters of the text that is collected. */
export const LINE_LENGTH_MAX = 1024 * 1024;
export const FRAMES_MAX = 100_000;
export const TEXT_LENGTH_MAX = RESULT_BYTES_MAX / 4;

const FRAME_LIMIT: HarnessEnding = { type: 'fail', code: 'harness_frame_limit_exceeded' };

export interface HarnessRunOptions {
  readonly vendor: Pick<HarnessVendor, 'read' | 'session'>;
  readonly timers: Timers;
  /** How long a session may say nothing before its input is closed, in milliseconds. */
  readonly silenceMs: number;
  /** How long it may take to go once it has said that it is done, in milliseconds. */
  readonly graceMs: number;
}

/** Follows one run from its own output. `touch` tells of activity that the output does not show. */
export interface HarnessRun {
  readonly ending: Promise<HarnessEnding>;
  touch(): void;
}

/**
 * Reads a harness to its end. Its word on how it ended counts, whatever it exits with; without one, its exit does. What it prints
 * that is not a frame is no concern of ours, and neither are its tool calls: those arrive over MCP.
 *
 * @see spec/runtimes.md §5, "Lifecycle per turn"
 */
export const followHarness = (process: HarnessProcess, { vendor, timers, silenceMs, graceMs }: HarnessRunOptions): HarnessRun => {
  let cancelSilence = (): void => undefined;
  const touch = (): void => {
    cancelSilence();
    if (vendor.session === true) cancelSilence = timers.after(silenceMs, () => process.endInput());
  };
  const follow = async (): Promise<HarnessEnding> => {
    touch();
    try {
      const said = await wordOf(process, vendor, touch);
      if ('text' in said) {
        const { code } = await process.exited;
        // It ended by itself and without a word: what it had said until then is its answer.
        return code === 0 ? { type: 'complete', text: said.text } : { type: 'fail', code: 'harness_exited_without_outcome' };
      }
      if (said.ending === FRAME_LIMIT) return FRAME_LIMIT;
      process.endInput();
      // Nobody listens any more; a full pipe would keep it from going.
      process.output.resume();
      await goneWithin(process, graceMs, timers);
      return said.ending;
    } finally {
      cancelSilence();
    }
  };
  return { ending: follow(), touch };
};

/** Its word on how it ended, or what it had said when its output ended without one. */
const wordOf = async (
  process: HarnessProcess,
  vendor: Pick<HarnessVendor, 'read'>,
  touch: () => void,
): Promise<{ readonly ending: HarnessEnding } | { readonly text: string }> => {
  let text = '';
  let frames = 0;
  for await (const line of linesOf(process.output, LINE_LENGTH_MAX)) {
    touch();
    if ('tooLong' in line) return { ending: FRAME_LIMIT };
    const read: { readonly ok: boolean; readonly value?: Json } = parseJsonText(line.text);
    if (!read.ok) continue;
    frames += 1;
    if (frames > FRAMES_MAX) return { ending: FRAME_LIMIT };
    const frame = vendor.read(read.value as Json);
    if (frame === undefined) continue;
    switch (frame.type) {
      case 'text':
        text = text === '' ? frame.text : `${text}\n${frame.text}`;
        if (text.length > TEXT_LENGTH_MAX) return { ending: FRAME_LIMIT };
        break;
      case 'complete':
        return { ending: { type: 'complete', text: frame.text ?? text } };
      case 'failed':
        return {
          ending: frame.code === undefined ? { type: 'fail', code: 'harness_failed', retryable: true } : { type: 'fail', code: frame.code },
        };
    }
  }
  return { text };
};

const goneWithin = async (process: HarnessProcess, graceMs: number, timers: Timers): Promise<void> => {
  let cancel = (): void => undefined;
  const late = new Promise<void>((resolve) => {
    cancel = timers.after(graceMs, resolve);
  });
  await Promise.race([process.exited, late]);
  cancel();
};
