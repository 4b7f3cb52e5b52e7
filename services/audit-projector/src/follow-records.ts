import { type Bus, type Follow, followStream, within } from '@sharedos/bus';
import { AuditRecordMessage, decodeOwnBody, parseSubject } from '@sharedos/contracts';
import type { RecordStore, StoredAudit } from './record-store.ts';

/** Records folded in one transaction, at most. */
const BATCH_MAX = 512;

export interface FollowRecords extends Follow {
  /** Waits for the next fold. @returns Whether there was one by the deadline. */
  folded(timeoutMs: number): Promise<boolean>;
  /** Something else is new: whoever waits looks again. */
  news(): void;
}

/**
 * Keeps the read model up with the stream, from where it stands, for as long as the process runs. What arrives in one turn of the
 * event loop is folded together. What cannot be read is named and left out; the others go on.
 */
export const followRecords = (
  bus: Bus,
  records: RecordStore,
  hooks: {
    readonly onFolded: () => void;
    readonly onParked: (what: string) => void;
    readonly onDefect: (error: unknown, where: string) => void;
  },
): FollowRecords => {
  let due: StoredAudit[] = [];
  let upTo = records.position;
  let scheduled: NodeJS.Immediate | undefined;
  let next = Promise.withResolvers<void>();

  const fold = (): void => {
    clearImmediate(scheduled);
    scheduled = undefined;
    const batch = due;
    due = [];
    try {
      records.append(batch, upTo);
    } catch (error) {
      hooks.onDefect(error, 'folding records');
      void follow.stop();
      return;
    }
    hooks.onFolded();
    news();
  };
  const news = (): void => {
    const waiting = next;
    next = Promise.withResolvers<void>();
    waiting.resolve();
  };

  const follow = followStream(bus, {
    stream: 'AUDIT',
    fromSequence: records.position + 1,
    onMessage: ({ sequence, subject, data }) => {
      const event = decodeOwnBody(AuditRecordMessage, data);
      const isInItsPlace = event.ok && parseSubject(subject)?.namespaceId === event.value.namespaceId;
      if (isInItsPlace) due.push({ sequence, event: event.value });
      else hooks.onParked(`audit record ${sequence}: ${event.ok ? 'it is of another namespace than its subject' : event.error.message}`);
      upTo = sequence;
      if (due.length >= BATCH_MAX) fold();
      else scheduled ??= setImmediate(fold);
    },
    onAlive: () => undefined,
    onDefect: hooks.onDefect,
  });

  return {
    get alive() {
      return follow.alive;
    },
    get lastSequence() {
      return follow.lastSequence;
    },
    folded: async (timeoutMs) => {
      const told = next.promise.then(() => true);
      return timeoutMs > 0 && (await within(told, timeoutMs)) === true;
    },
    news,
    stop: async () => {
      await follow.stop();
      if (scheduled !== undefined) fold();
    },
  };
};
