import { randomUUID } from 'node:crypto';
import type { handleServerStreamingCall } from '@grpc/grpc-js';
import { type Users, whyRefused } from './call-rules.ts';
import { matcherOf } from './event-filter.ts';
import type { EventLog } from './event-log.ts';
import type { Faults } from './faults.ts';
import { invalidPosition, streamDeleted } from './rpc-error.ts';
import type { StoredEvent } from './stored-event.ts';
import { type ReadCall, send } from './read-call.ts';
import { type SubscriptionPlan, runSubscription } from './subscription.ts';
import { type ReadRequest, EMPTY, streamIdentifier, streamNameOf, uuidAs } from './wire.ts';

export interface Reading {
  readonly log: EventLog;
  readonly faults: Faults;
  /** Whether events of a stream come with their position in `$all`, as from servers since 22.6. */
  readonly positionsInStreams: boolean;
}

type Options = NonNullable<ReadRequest['options']>;

/** .NET counts in steps of 100 ns. */
const TICKS_PER_MS = 10_000n;
const SEARCH_WINDOW = 32;

/** `Streams.Read`: a stream or `$all`, forwards or backwards, to an end or as a subscription. */
export const readHandler =
  (reading: Reading, users: Users | undefined): handleServerStreamingCall<ReadRequest, object> =>
  (call) => {
    void (async () => {
      await reading.faults.serving.passed();
      const refused = whyRefused(call.metadata, users, reading.faults);
      if (refused !== undefined) return call.emit('error', refused);
      const options = call.request.options ?? {};
      if (options.extent === 'subscription') return subscribe(reading, call, options);
      return options.stream === undefined ? readAll(reading, call, options) : readStream(reading, call, options);
    })();
  };

const readStream = async ({ log, positionsInStreams }: Reading, call: ReadCall, options: Options): Promise<void> => {
  const name = streamNameOf(options.stream?.streamIdentifier);
  const from = options.stream?.from === 'revision' ? Number(options.stream.revision ?? '0') : (options.stream?.from ?? 'start');
  const read = log.readStream(name, from, options.readDirection === 1, countOf(options));
  if (read.kind === 'deleted') return void call.emit('error', streamDeleted(name));
  if (read.kind === 'not_found') await send(call, { streamNotFound: { streamIdentifier: streamIdentifier(name) } });
  else for (const event of read.events) if (!(await send(call, eventMessage(event, formOf(options), positionsInStreams)))) return;
  call.end();
};

const readAll = async ({ log }: Reading, call: ReadCall, options: Options): Promise<void> => {
  const { from = 'start', position } = options.all ?? {};
  const at = Number(position?.commitPosition ?? '0');
  if (from === 'position' && !log.isPosition(at)) return void call.emit('error', invalidPosition());
  const index = { start: 0, end: log.all.length, position: log.indexAt(at) }[from];
  const matches = matcherOf(options.filter);
  const backwards = options.readDirection === 1;
  // A snapshot: what comes while it is sent is not part of it.
  const events = (backwards ? log.all.slice(0, index).reverse() : log.all.slice(index)).filter(matches).slice(0, countOf(options));
  for (const event of events) if (!(await send(call, eventMessage(event, formOf(options), true)))) return;
  call.end();
};

const subscribe = async ({ log, faults, positionsInStreams }: Reading, call: ReadCall, options: Options): Promise<void> => {
  const plan = planOf(log, options, positionsInStreams);
  if (plan === undefined) return void call.emit('error', invalidPosition());
  if (await send(call, { confirmation: { subscriptionId: randomUUID() } })) await runSubscription(log, faults, call, plan);
};

const planOf = (log: EventLog, options: Options, positionsInStreams: boolean): SubscriptionPlan | undefined => {
  const message = (event: StoredEvent) => eventMessage(event, formOf(options), options.stream === undefined || positionsInStreams);
  if (options.stream !== undefined) {
    const { streamIdentifier: identifier, from = 'start', revision } = options.stream;
    const name = streamNameOf(identifier);
    const after = from === 'revision' ? Number(revision ?? '0') : -1;
    const matches = (event: StoredEvent) => event.stream === name && event.revision > after;
    return { index: from === 'end' ? log.all.length : 0, matches, message, checkpointEvery: undefined };
  }
  const { from = 'start', position } = options.all ?? {};
  const at = Number(position?.commitPosition ?? '0');
  if (from === 'position' && !log.isPosition(at)) return undefined;
  // After a position, unlike a read, which begins with it.
  const index = { start: 0, end: log.all.length, position: log.indexAt(at + 1) }[from];
  const { filter } = options;
  const checkpointEvery = filter === undefined ? undefined : (filter.max ?? SEARCH_WINDOW) * (filter.checkpointIntervalMultiplier ?? 1);
  return { index, matches: matcherOf(filter), message, checkpointEvery };
};

const countOf = ({ count }: Options): number => Number(count ?? '0');
const formOf = ({ uuidOption }: Options): 'structured' | 'string' => uuidOption?.form ?? 'structured';

/** What a server says instead of a position that it does not know. */
const NO_POSITION = String(2n ** 64n - 1n);

const eventMessage = (event: StoredEvent, form: 'structured' | 'string', saysPosition: boolean): object => ({
  event: {
    event: {
      id: uuidAs(event.id, form),
      streamIdentifier: streamIdentifier(event.stream),
      streamRevision: String(event.revision),
      commitPosition: saysPosition ? String(event.position) : NO_POSITION,
      preparePosition: saysPosition ? String(event.position) : NO_POSITION,
      metadata: { type: event.type, 'content-type': event.contentType, created: String(BigInt(event.at) * TICKS_PER_MS) },
      customMetadata: event.metadata,
      data: event.data,
    },
    ...(saysPosition ? { commitPosition: String(event.position) } : { noPosition: EMPTY }),
  },
});
