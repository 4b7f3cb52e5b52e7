import { type Bus, LIMIT_CODES, WORK_QUEUES, type WorkQueue, streamInfo, subjectCounts, subjectPatterns } from '@sharedos/bus';
import { parseSubject } from '@sharedos/contracts';
import { measurements } from '@sharedos/telemetry';

/** @param ms From the claim to the published answer. */
export const countTurn = (status: string, ms: number): void => {
  measurements.count('turns', status);
  measurements.time('turnSeconds', ms / 1_000);
};

export const countRefusal = (namespaceId: string, code: string): void => {
  measurements.count('turnsRefused', code);
  if (LIMIT_CODES.has(code)) measurements.count('limitsHit', namespaceId, code);
};

const ANSWER_MS = 1_000;
const { stream, verbs } = WORK_QUEUES['tool-executor'];

/** What waits and what runs, asked of the broker when somebody asks for the metrics. */
export const watchQueue = (bus: Bus, queue: WorkQueue, clock: () => number): void => {
  measurements.watch('turnsRunning', () => queue.running);
  measurements.watch('queueDepth', async () => {
    const depths = new Map<string, number>();
    for (const pattern of verbs.flatMap(subjectPatterns)) {
      const counts = await subjectCounts(bus, stream, pattern, { timeoutMs: ANSWER_MS });
      if (!counts.ok) return undefined;
      for (const [natsSubject, count] of Object.entries(counts.value)) {
        const namespaceId = parseSubject(natsSubject)?.namespaceId;
        if (namespaceId !== undefined) depths.set(namespaceId, (depths.get(namespaceId) ?? 0) + count);
      }
    }
    return [...depths].map(([namespaceId, value]) => ({ labels: [namespaceId], value }));
  });
  measurements.watch('queueAge', async () => {
    const info = await streamInfo(bus, stream, { timeoutMs: ANSWER_MS });
    if (!info.ok) return undefined;
    const { messages, first_ts } = info.value.state;
    return messages === 0 ? 0 : Math.max(0, clock() - Date.parse(first_ts)) / 1_000;
  });
};
