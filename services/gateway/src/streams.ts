import type { ClientError } from '@sharedos/client';
import { type ExecutionEvent, type Result, err, ok } from '@sharedos/contracts';
import type { EventStream } from './event-stream.ts';
import type { Asked } from './operations.ts';
import type { Speakers } from './speakers.ts';

/** What fills a stream once it is open; it ends the stream. */
export type Fill = (stream: EventStream) => Promise<void>;
/** @param lastEventId The last event that the other side has seen, as it says. */
export type Streamed = (asked: Asked, lastEventId: string | undefined) => Promise<Result<Fill, ClientError>>;

const WHOLE_NUMBER = /^\d{1,15}$/;
const placeIn = (lastEventId: string | undefined): number | undefined =>
  lastEventId !== undefined && WHOLE_NUMBER.test(lastEventId) ? Number(lastEventId) : undefined;

/** The routes that are answered with events. Errors before the first event are answers; one after it ends the stream. */
export const streams = (speakers: Speakers, turnWaitMs: number): Readonly<Record<'turnEvents' | 'auditRecords', Streamed>> => ({
  turnEvents: async ({ identity, parameters }, lastEventId) => {
    const sharedos = await speakers.principal(identity);
    if (!sharedos.ok) return sharedos;
    let deliver: (event: ExecutionEvent) => void = (event) => early.push(event);
    const early: ExecutionEvent[] = [];
    const watched = await sharedos.value.turns.watch(parameters['executionId'] ?? '', {
      resultTimeoutMs: turnWaitMs,
      onEvent: (event) => deliver(event),
    });
    if (!watched.ok) return watched;
    return ok(async (stream) => {
      let last = placeIn(lastEventId) ?? -1;
      const send = async (event: ExecutionEvent): Promise<void> => {
        if (event.sequence <= last) return;
        last = event.sequence;
        await stream.send({ id: String(event.sequence), event: event.type, data: event });
      };
      deliver = (event) => void send(event);
      for (const event of early) await send(event);
      const stop = (): void => void watched.value.stop();
      stream.gone.addEventListener('abort', stop, { once: true });
      const ended = await watched.value.result;
      if (ended.ok) {
        for (const event of ended.value.result.events) await send(event);
        await stream.send({ event: 'result', data: ended.value.result });
      }
      stream.end();
    });
  },

  auditRecords: async ({ identity, signal }, lastEventId) => {
    const sharedos = await speakers.principal(identity);
    if (!sharedos.ok) return sharedos;
    const after = placeIn(lastEventId) ?? 0;
    // Whether it may be read at all is found out before anything is promised.
    const allowed = await sharedos.value.records.query({ limit: 1, after });
    if (!allowed.ok) return allowed;
    if (signal.aborted) return err({ kind: 'unavailable', reason: 'whoever asked has gone' });
    return ok(async (stream) => {
      for await (const item of sharedos.value.audit.records({ after, follow: true, signal: stream.gone })) {
        if (!item.ok) break;
        const { kind, ...data } = item.value;
        await stream.send(
          kind === 'record' && 'sequence' in data ? { id: String(data.sequence), event: kind, data } : { event: kind, data },
        );
      }
      stream.end();
    });
  },
});
