import { type Bus, type Progress, consumerInfo, streamHead } from '@sharedos/bus';
import { measurements } from '@sharedos/telemetry';
import type { RecordStore } from './record-store.ts';

const ANSWER_MS = 1_000;

/** How far the read model is behind the records, and the records behind the ledger: asked when somebody asks for the metrics. */
export const watchProjection = (
  bus: Bus,
  records: Pick<RecordStore, 'position'>,
  { stream, consumer }: { readonly stream: string; readonly consumer: string },
): void => {
  measurements.watch('projectionPosition', () => records.position);
  measurements.watch('projectionLag', async () => (await projectionProgress(bus, records)).lag);
  measurements.watch('ledgerPending', async () => {
    const info = await consumerInfo(bus, stream, consumer, { timeoutMs: ANSWER_MS });
    return info.ok ? info.value.num_pending + info.value.num_ack_pending : undefined;
  });
};

export const projectionProgress = async (bus: Bus, records: Pick<RecordStore, 'position'>): Promise<Progress> => {
  const head = await streamHead(bus, 'AUDIT', { timeoutMs: ANSWER_MS });
  const { position } = records;
  return { position, ...(head.ok ? { lag: Math.max(0, head.value - position) } : {}) };
};
