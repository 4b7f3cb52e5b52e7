import { type Bus, type Follow, followStream } from '@sharedos/bus';
import { AuditRecordMessage, decodeOwnBody } from '@sharedos/contracts';
import type { AuditReadModel } from './read-model.ts';

/** Keeps the read model up with the stream, from its beginning, for as long as the process runs. */
export const followRecords = (bus: Bus, records: AuditReadModel, onDefect: (error: unknown, where: string) => void): Follow =>
  followStream(bus, {
    stream: 'AUDIT',
    fromSequence: 1,
    onMessage: ({ sequence, data }) => {
      const event = decodeOwnBody(AuditRecordMessage, data);
      if (event.ok) records.apply(sequence, event.value);
      else records.skip(sequence);
    },
    onAlive: () => undefined,
    onDefect,
  });
