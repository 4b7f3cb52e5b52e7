import type { StreamName } from '@sharedos/contracts';
import type { Bus } from './bus.ts';
import { streamInfo } from './read-subject.ts';

const ANSWER_MS = 1_000;

/** How full each stream is, 0 to 1; 0 for one without a bound. Those that do not answer are left out. */
export const streamsUsed = async (
  bus: Bus,
  streams: readonly StreamName[],
): Promise<readonly { readonly labels: readonly string[]; readonly value: number }[]> => {
  const found = await Promise.all(
    streams.map(async (stream) => {
      const info = await streamInfo(bus, stream, { timeoutMs: ANSWER_MS });
      if (!info.ok) return [];
      const bytesMax = info.value.config.max_bytes ?? -1;
      return [{ labels: [stream], value: bytesMax > 0 ? info.value.state.bytes / bytesMax : 0 }];
    }),
  );
  return found.flat();
};
