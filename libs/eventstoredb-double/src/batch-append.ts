import type { handleBidiStreamingCall } from '@grpc/grpc-js';
import { type Appending, appendWith, expectedAgain, expectedOf, proposedOf, sizeOf, success } from './append-rules.ts';
import { type Users, whyRefused } from './call-rules.ts';
import type { AppendOutcome, Expected } from './event-log.ts';
import type { ProposedEvent } from './stored-event.ts';
import { type BatchAppendRequest, EMPTY, packed, streamIdentifier, streamNameOf, uuidAs, uuidOf } from './wire.ts';

const NAMES = {
  revision: 'expectedStreamPosition',
  any: 'expectedAny',
  streamExists: 'expectedStreamExists',
  noStream: 'expectedNoStream',
} as const;
/** Status codes of google.rpc. */
const [INVALID_ARGUMENT, DEADLINE_EXCEEDED, FAILED_PRECONDITION] = [3, 4, 9];

interface Pending {
  readonly stream: string;
  readonly expected: Expected;
  readonly deadline: number;
  readonly events: ProposedEvent[];
  bytes: number;
}

/** `Streams.BatchAppend`: many appends over one call, each told apart by its correlation id and answered when it is done. */
export const batchAppendHandler =
  (appending: Appending, users: Users | undefined): handleBidiStreamingCall<BatchAppendRequest, object> =>
  (call) => {
    const pending = new Map<string, Pending>();
    const answer = (correlationId: string, stream: string, result: object): void => {
      if (!call.cancelled)
        call.write({ correlationId: uuidAs(correlationId, 'string'), streamIdentifier: streamIdentifier(stream), ...result });
    };

    const receive = async (request: BatchAppendRequest): Promise<void> => {
      const correlationId = uuidOf(request.correlationId);
      const { options } = request;
      if (options !== undefined) {
        const deadline = options.deadline === undefined ? Infinity : Number(options.deadline.seconds ?? 0) * 1_000;
        const stream = streamNameOf(options.streamIdentifier);
        pending.set(correlationId, { stream, expected: expectedOf(options), deadline, events: [], bytes: 0 });
      }
      const append = pending.get(correlationId);
      if (append === undefined) return;
      const { stream, expected, deadline, events } = append;
      for (const message of request.proposedMessages ?? []) {
        const event = proposedOf(message);
        if (typeof event === 'string') {
          pending.delete(correlationId);
          return answer(
            correlationId,
            stream,
            error(INVALID_ARGUMENT, `${event} is missing`, 'BadRequest', { message: `${event} is missing` }),
          );
        }
        events.push(event);
        append.bytes += sizeOf(event);
      }
      if (append.bytes > appending.appendBytesMax) {
        pending.delete(correlationId);
        const details = { maxAppendSize: appending.appendBytesMax };
        return answer(correlationId, stream, error(INVALID_ARGUMENT, 'too large', 'MaximumAppendSizeExceeded', details));
      }
      if (request.isFinal !== true) return;
      pending.delete(correlationId);
      await appending.faults.serving.passed();
      const refused = whyRefused(call.metadata, users, appending.faults);
      if (refused !== undefined) return void call.emit('error', refused);
      if (deadline + 1_000 < Date.now()) return answer(correlationId, stream, error(DEADLINE_EXCEEDED, 'Timeout', 'Timeout', {}));
      const outcome = await appendWith(appending, stream, expected, events);
      if (outcome !== undefined) answer(correlationId, stream, resultOf(outcome, stream, expected));
    };

    call.on('data', (request: BatchAppendRequest) => void receive(request));
    call.on('end', () => call.end());
    call.on('error', () => undefined);
  };

const error = (code: number, message: string, name: string, details: object): object => ({
  error: { code, message, details: packed(name, details) },
});

const resultOf = (outcome: AppendOutcome, stream: string, expected: Expected): object => {
  switch (outcome.kind) {
    case 'stored':
      return { success: success(outcome) };
    case 'deleted':
      return error(FAILED_PRECONDITION, 'StreamDeleted', 'StreamDeleted', { streamIdentifier: streamIdentifier(stream) });
    case 'wrong_expected_version':
      return error(FAILED_PRECONDITION, 'WrongExpectedVersion', 'WrongExpectedVersion', {
        ...(outcome.current === undefined ? { currentNoStream: EMPTY } : { currentStreamRevision: String(outcome.current) }),
        ...expectedAgain(expected, NAMES),
      });
    default:
      return outcome satisfies never;
  }
};
