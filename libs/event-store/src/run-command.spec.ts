import { describe, expect, it } from 'vitest';
import { type LogEvent, byCodeUnit, err, ok } from '@sharedos/contracts';
import { type Decider, accept, refuse } from '@sharedos/kernel';
import { eventIdOf } from './event-id.ts';
import type { EventStore, StreamId } from './event-store.ts';
import { APPEND_BYTES_MAX } from './log-record.ts';
import { memoryEventStore } from './memory.ts';
import { type CommandRun, runCommand } from './run-command.ts';

// A door that opens for a list of names, once for each name, until it is shut.
interface Door {
  readonly inside: readonly string[];
  readonly shut: boolean;
}
type DoorCommand = { readonly do: 'enter'; readonly names: readonly string[] } | { readonly do: 'shut' };
type DoorEvent = { readonly type: 'Entered'; readonly name: string } | { readonly type: 'Shut' };

const door: Decider<Door, DoorCommand, DoorEvent, { readonly code: 'door_shut' }> = {
  initial: { inside: [], shut: false },
  decide: (command, state) => {
    if (command.do === 'shut') return accept(state.shut ? [] : [{ type: 'Shut' }]);
    if (state.shut) return refuse({ code: 'door_shut' });
    return accept(command.names.map((name) => ({ type: 'Entered' as const, name })));
  },
  evolve: (state, event) => (event.type === 'Shut' ? { ...state, shut: true } : { ...state, inside: [...state.inside, event.name] }),
};

const stream: StreamId = { category: 'agent', namespaceId: 'acme', id: 'door' };
const parseEvent = ({ type, data }: LogEvent): DoorEvent | undefined => {
  if (type === 'Shut') return { type };
  return type === 'Entered' ? { type, name: data['name'] as string } : undefined;
};
const envelopeOf =
  (commandId: string) =>
  (index: number, event: DoorEvent): LogEvent => ({
    eventId: eventIdOf({ namespaceId: 'acme', principal: 'ann', verb: 'door', commandId, index }),
    type: event.type,
    schemaVersion: 1,
    at: '2026-01-01T12:00:00.000Z',
    principal: { kind: 'human', userId: 'ann' },
    correlationId: commandId,
    data: event.type === 'Entered' ? { name: event.name } : {},
  });
const enter = (...names: readonly string[]): DoorCommand => ({ do: 'enter', names });

const run = (
  store: EventStore,
  commandId: string,
  command: DoorCommand,
  more: Partial<CommandRun<Door, DoorCommand, DoorEvent, { code: 'door_shut' }>> = {},
) => runCommand({ store, stream, decider: door, parseEvent, command, envelope: envelopeOf(commandId), ...more });

/** The store, with something done between every read and the append that follows it. */
const interrupted = (store: EventStore, between: (attempt: number) => Promise<unknown>): EventStore => {
  let attempt = 0;
  return {
    ...store,
    read: async (of) => {
      const read = await store.read(of);
      await between((attempt += 1));
      return read;
    },
  };
};

describe('running a command', () => {
  it('appends what was decided and answers with its position and state', async () => {
    const store = memoryEventStore();
    expect(await run(store, 'c-1', enter('ann', 'bob'))).toEqual(
      ok({
        events: [
          { type: 'Entered', name: 'ann' },
          { type: 'Entered', name: 'bob' },
        ],
        position: 2,
        state: { inside: ['ann', 'bob'], shut: false },
      }),
    );
    expect(await run(store, 'c-2', enter('cat'))).toMatchObject({
      ok: true,
      value: { position: 3, state: { inside: ['ann', 'bob', 'cat'] } },
    });
  });

  it('answers a refusal of the decider and appends nothing', async () => {
    const store = memoryEventStore();
    await run(store, 'c-1', { do: 'shut' });
    expect(await run(store, 'c-2', enter('ann'))).toEqual(err({ code: 'door_shut' }));
    expect(await store.barrier(100)).toEqual(ok(1));
  });

  it('answers a command that changes nothing with where the stream ends', async () => {
    const store = memoryEventStore();
    await run(store, 'c-1', { do: 'shut' });
    expect(await run(store, 'c-2', { do: 'shut' })).toEqual(ok({ events: [], position: 1, state: { inside: [], shut: true } }));
    expect(await run(memoryEventStore(), 'c-3', enter())).toMatchObject({ ok: true, value: { events: [], position: 0 } });
  });

  it('answers a retried command as it did the first time, even if it would now be refused', async () => {
    const store = memoryEventStore();
    await run(store, 'c-0', enter('zoe'));
    const first = await run(store, 'c-1', enter('ann', 'bob'));
    await run(store, 'c-2', { do: 'shut' });
    expect(await run(store, 'c-1', enter('ann', 'bob'))).toEqual(first);
    expect(await store.barrier(100)).toEqual(ok(4));
  });

  it('knows a retried command by its id, not by what it asks', async () => {
    const store = memoryEventStore();
    const first = await run(store, 'c-1', enter('ann'));
    expect(await run(store, 'c-1', enter('somebody', 'else'))).toEqual(first);
  });

  it('decides again on what another writer did in between', async () => {
    const store = memoryEventStore();
    const shutFirst = interrupted(store, (attempt) => (attempt === 1 ? run(store, 'other', { do: 'shut' }) : Promise.resolve()));
    expect(await run(shutFirst, 'c-1', enter('ann'))).toEqual(err({ code: 'door_shut' }));
  });

  it('does a command once when it is run twice at the same time', async () => {
    const store = memoryEventStore();
    const [one, two] = await Promise.all([run(store, 'c-1', enter('ann')), run(store, 'c-1', enter('ann'))]);
    expect(one.ok).toBe(true);
    expect(two).toEqual(one);
    expect(await store.barrier(100)).toEqual(ok(1));
  });

  it('answers with what was recorded when the same command was run elsewhere meanwhile', async () => {
    const store = memoryEventStore();
    const elsewhere = interrupted(store, (attempt) => (attempt === 1 ? run(store, 'c-1', enter('as decided there')) : Promise.resolve()));
    expect(await run(elsewhere, 'c-1', enter('as decided here'))).toMatchObject({
      ok: true,
      value: { state: { inside: ['as decided there'] } },
    });
  });

  it('gives up after as many attempts as it was given, and says that it is not a refusal', async () => {
    const store = memoryEventStore();
    let others = 0;
    const busy = interrupted(store, () => run(store, `other-${(others += 1)}`, enter('other')));
    expect(await run(busy, 'c-1', enter('ann'), { attemptsMax: 3 })).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(others).toBe(3);
  });

  it('lets every one of many writers through in the end', async () => {
    const store = memoryEventStore();
    const names = Array.from({ length: 16 }, (_, index) => `n-${index}`);
    const done = await Promise.all(names.map((name) => run(store, name, enter(name), { attemptsMax: 16 })));
    expect(done.every((each) => each.ok)).toBe(true);
    const read = await store.read(stream);
    expect(read.ok && read.value.events.map(({ event }) => event.data['name'] as string).sort(byCodeUnit)).toEqual(
      [...names].sort(byCodeUnit),
    );
  });

  it('is unavailable when the store is, and done once when it is run again', async () => {
    const store = memoryEventStore({ timeoutMs: 5 });
    const stopsBeforeAppend = interrupted(store, async () => store.stop());
    expect(await run(stopsBeforeAppend, 'c-1', enter('ann'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await run(store, 'c-1', enter('ann'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    store.resume();
    expect(await run(store, 'c-1', enter('ann'))).toMatchObject({ ok: true, value: { position: 1 } });
    expect(await store.barrier(100)).toEqual(ok(1));
  });

  it('does not decide on a stream with an event it does not know', async () => {
    const store = memoryEventStore();
    await store.append(stream, 0, [{ ...envelopeOf('c-0')(0, { type: 'Shut' }), type: 'Painted' }]);
    expect(await run(store, 'c-1', enter('ann'))).toMatchObject({
      ok: false,
      error: { kind: 'unavailable', reason: expect.stringContaining('Painted') },
    });
  });

  it('says so when the events are too large', async () => {
    expect(await run(memoryEventStore(), 'c-1', enter('x'.repeat(APPEND_BYTES_MAX)))).toEqual(err({ kind: 'too_large' }));
  });
});
