import type { ServerReadableStream, handleClientStreamingCall, handleUnaryCall } from '@grpc/grpc-js';
import { type Appending, appendWith, expectedAgain, expectedOf, proposedOf, sizeOf, success } from './append-rules.ts';
import { type Users, whyRefused } from './call-rules.ts';
import type { Expected } from './event-log.ts';
import { appendTooLarge, missingProperty, streamDeleted, wrongExpectedVersion } from './rpc-error.ts';
import type { ProposedEvent } from './stored-event.ts';
import { type AppendRequest, type DeleteRequest, EMPTY, streamNameOf } from './wire.ts';

const NAMES = {
  revision: 'expectedRevision',
  any: 'expectedAny',
  streamExists: 'expectedStreamExists',
  noStream: 'expectedNoStream',
} as const;

/** `Streams.Append`: what is expected, then the events one by one, then one answer. */
export const appendHandler =
  (appending: Appending, users: Users | undefined): handleClientStreamingCall<AppendRequest, object> =>
  (call, answer) => {
    void (async () => {
      const messages = await allOf(call);
      await appending.faults.serving.passed();
      const refused = whyRefused(call.metadata, users, appending.faults);
      if (refused !== undefined) return answer(refused);
      const options = messages[0]?.options ?? {};
      const proposed: ProposedEvent[] = [];
      let bytes = 0;
      for (const { proposedMessage } of messages.slice(1)) {
        const event = proposedOf(proposedMessage ?? {});
        if (typeof event === 'string') return answer(missingProperty(event));
        bytes += sizeOf(event);
        if (bytes > appending.appendBytesMax) return answer(appendTooLarge(appending.appendBytesMax));
        proposed.push(event);
      }
      const [name, expected] = [streamNameOf(options.streamIdentifier), expectedOf(options)];
      const outcome = await appendWith(appending, name, expected, proposed);
      if (outcome === undefined) return undefined;
      if (outcome.kind === 'deleted') return answer(streamDeleted(name));
      return answer(null, outcome.kind === 'stored' ? { success: success(outcome) } : conflict(expected, outcome.current));
    })();
  };

const conflict = (expected: Expected, current: number | undefined): object => ({
  wrongExpectedVersion: {
    ...(current === undefined ? { currentNoStream: EMPTY } : { currentRevision: String(current) }),
    ...expectedAgain(expected, NAMES),
  },
});

/** All that a caller sends. A caller that goes away before the end has sent nothing. */
const allOf = (call: ServerReadableStream<AppendRequest, object>): Promise<readonly AppendRequest[]> =>
  new Promise((resolve) => {
    const messages: AppendRequest[] = [];
    call.on('data', (message: AppendRequest) => void messages.push(message));
    call.on('end', () => resolve(messages));
    call.on('error', () => undefined);
  });

/** `Streams.Delete` and `Streams.Tombstone`: the first ends a stream so that it may be begun anew, the second for ever. */
export const deleteHandler =
  (appending: Appending, users: Users | undefined, forEver: boolean): handleUnaryCall<DeleteRequest, object> =>
  (call, answer) => {
    void (async () => {
      await appending.faults.serving.passed();
      const refused = whyRefused(call.metadata, users, appending.faults);
      if (refused !== undefined) return answer(refused);
      const options = call.request.options ?? {};
      const [name, expected] = [streamNameOf(options.streamIdentifier), expectedOf(options)];
      const judged = appending.log.judge(name, expected, []);
      if (judged?.kind === 'deleted') return answer(streamDeleted(name));
      if (judged?.kind === 'wrong_expected_version') return answer(wrongExpectedVersion(name, String(expected), judged.current));
      const outcome = appending.log.delete(name, forEver);
      return answer(null, outcome.kind === 'stored' ? success(outcome) : {});
    })();
  };
