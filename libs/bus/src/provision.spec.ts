import { AckPolicy, DiscardPolicy, RetentionPolicy, StorageType, type StreamConfig, connect, nanos } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestServer, testServer } from './broker.fixture.ts';
import { checkStreams, describeProvisionRefusal, provision } from './provision.ts';
import { type StreamOptions, streamSettings } from './streams.ts';

let server: TestServer;
beforeEach(async () => {
  server = await testServer();
});
afterEach(() => server.end());

// The server of these tests has little room.
const bytesMax = { TURNS: 1_000_000, TURN_EVENTS: 1_000_000, LEDGER: 1_000_000, MESSAGES: 1_000_000, AUDIT: 1_000_000 };
const settings = streamSettings({ bytesMax });
const provisioned = (options: StreamOptions = {}) =>
  provision({ servers: server.url, user: 'service', pass: 'secret' }, { bytesMax, ...options });
const NAMES = ['AUDIT', 'LEDGER', 'LOG', 'MESSAGES', 'SEALS', 'TURNS', 'TURN_EVENTS'];

describe('provisioning', () => {
  it('makes every stream and consumer, and a second time changes nothing', async () => {
    expect(await provisioned()).toEqual({ ok: true, value: undefined });
    const made = await server.jsm.streams.list().next();
    expect(made.map(({ config }) => config.name).toSorted()).toEqual(NAMES);
    expect(await provisioned()).toEqual({ ok: true, value: undefined });
    expect((await server.jsm.streams.list().next()).map(({ config }) => config)).toEqual(made.map(({ config }) => config));
    const outcomes = (await server.jsm.consumers.info('LEDGER', 'audit-projector')).config;
    expect(outcomes).toMatchObject({ ack_policy: 'explicit', max_deliver: -1, ack_wait: nanos(30_000) });
    expect(outcomes.deliver_subject).toBeUndefined();
    expect(await checkStreams(server.admin)).toEqual({ ok: true, value: undefined });
  });
  it('is refused while the one consumer stands that all requests once had, since no tenant could have its own', async () => {
    await server.jsm.streams.add(settings.TURNS);
    await server.jsm.consumers.add('TURNS', { durable_name: 'tool-executor', ack_policy: AckPolicy.Explicit });
    expect(await provisioned()).toMatchObject({
      ok: false,
      error: { kind: 'contradiction', of: 'consumer tool-executor of TURNS', setting: 'existence', wanted: false },
    });
    await server.jsm.consumers.delete('TURNS', 'tool-executor');
    expect(await provisioned()).toMatchObject({ ok: true });
  });
  it('brings a stream with other limits to ours, never takes room away, and keeps what is in it', async () => {
    await server.jsm.streams.add({
      ...settings.AUDIT,
      max_bytes: 2_000_000,
      max_age: nanos(3_600_000),
      subjects: ['sharedos.v1.t.audit.>'],
    });
    await server.admin.request('sharedos.v1.t.audit.denied.tool.invoked', 'kept');
    expect(await provisioned()).toMatchObject({ ok: true });
    const { config, state } = await server.jsm.streams.info('AUDIT');
    expect(config).toMatchObject({ max_bytes: 2_000_000, max_age: 0, subjects: ['sharedos.v1.*.audit.>'] });
    expect(state.messages).toBe(1);
  });
  it('gives a stream that is too small the room it needs', async () => {
    await server.jsm.streams.add({ ...settings.AUDIT, max_bytes: 10_000 });
    expect(await provisioned()).toMatchObject({ ok: true });
    expect((await server.jsm.streams.info('AUDIT')).config.max_bytes).toBeGreaterThan(10_000);
  });
  it.each([
    ['retention', { ...settings.LEDGER, retention: RetentionPolicy.Workqueue }],
    ['storage', { ...settings.LEDGER, storage: StorageType.Memory }],
    ['deny_purge', { ...settings.LEDGER, deny_purge: true }],
  ] as const)('is refused when an existing stream has another %s, and says which', async (setting, existing) => {
    await server.jsm.streams.add(existing);
    const refused = await provisioned();
    expect(refused).toMatchObject({ ok: false, error: { kind: 'contradiction', of: 'stream LEDGER', setting } });
    if (!refused.ok) expect(describeProvisionRefusal(refused.error)).toMatch(new RegExp(`^stream LEDGER: ${setting} is .+ and must be `));
  });
  it('is refused, with the words of the broker, when another stream holds one of our subjects', async () => {
    await server.jsm.streams.add({ name: 'OTHER', subjects: ['sharedos.v1.t.log.grant.*'] });
    expect(await provisioned()).toMatchObject({
      ok: false,
      error: { kind: 'refused', of: 'stream LOG', why: expect.stringMatching(/overlap/) },
    });
  });
  it('is refused when an existing stream has another live copy: the server changes that in no stream', async () => {
    await server.jsm.streams.add({ ...settings.AUDIT, republish: { src: 'sharedos.v1.*.audit.>', dest: 'elsewhere.{{wildcard(1)}}.>' } });
    expect(await provisioned()).toMatchObject({
      ok: false,
      error: { kind: 'refused', of: 'stream AUDIT', why: expect.stringMatching(/republish/i) },
    });
  });
  it('is unavailable when there is no broker, or it does not know the user', async () => {
    expect(await provision({ servers: 'nats://127.0.0.1:1', user: 'service', pass: 'secret' })).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
    expect(await provision({ servers: server.url, user: 'service', pass: 'wrong' })).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
  });
});

describe('checking the streams at a start', () => {
  it('names a stream that is missing', async () =>
    expect(await checkStreams(server.admin, ['LOG'])).toMatchObject({
      ok: false,
      error: { kind: 'contradiction', of: 'stream LOG', setting: 'existence' },
    }));
  it.each([
    ['TURNS', 'discard_new_per_subject', { discard_new_per_subject: false }],
    ['LEDGER', 'discard', { discard: DiscardPolicy.Old }],
    ['LEDGER', 'max_age', { max_age: nanos(3_600_000) }],
    ['LEDGER', 'max_msgs_per_subject', { max_msgs_per_subject: 100 }],
    ['LEDGER', 'allow_rollup_hdrs', { allow_rollup_hdrs: true }],
    ['LEDGER', 'subjects', { subjects: ['sharedos.v1.*.ledger.execution.>'] }],
    ['TURNS', 'duplicate_window', { duplicate_window: nanos(120_000) }],
  ] as const)('names %s when its %s was changed', async (name, setting, change) => {
    await server.jsm.streams.add({ ...settings[name], ...change } as Partial<StreamConfig>);
    expect(await checkStreams(server.admin, [name])).toMatchObject({ ok: false, error: { of: `stream ${name}`, setting } });
  });
  it('leaves the size of a stream to its operator', async () => {
    await server.jsm.streams.add({ ...settings.LEDGER, max_bytes: 1_000_000 });
    expect(await checkStreams(server.admin, ['LEDGER'])).toMatchObject({ ok: true });
  });
  it('is unavailable when the broker does not answer', async () => {
    const nats = await connect({ servers: server.url, user: 'service', pass: 'secret' });
    await nats.close();
    expect(await checkStreams(nats, ['LOG'])).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });
});

describe('the streams', () => {
  beforeEach(() => provisioned());

  it('keep a claim for ever: LEDGER has no age, no limit per subject, and refuses what is new when full', () => {
    const { max_age, max_msgs_per_subject, discard } = streamSettings().LEDGER;
    expect({ max_age, max_msgs_per_subject, discard }).toEqual({ max_age: 0, max_msgs_per_subject: -1, discard: 'new' });
  });
  it('let nobody delete from or empty the log', async () => {
    await server.admin.request('sharedos.v1.t.log.grant.g1', '{}');
    await expect(server.jsm.streams.deleteMessage('LOG', 1)).rejects.toThrow(/not permitted/);
    await expect(server.jsm.streams.purge('LOG')).rejects.toThrow(/not permitted/);
  });
  it('queue at most 50 requests of one principal, whatever the others have queued', async () => {
    const ask = async (id: string) =>
      JSON.parse((await server.admin.request(`sharedos.v1.t.turn.request.agent.${id}`, '{}')).string()) as {
        seq?: number;
        error?: { description: string };
      };
    for (let count = 0; count < 50; count += 1) expect((await ask('a')).error).toBeUndefined();
    expect((await ask('a')).error?.description).toMatch(/maximum messages per subject/);
    expect((await ask('b')).error).toBeUndefined();
  });
  it('copy audit records to the live feed, with their sequence and the one before', async () => {
    const feed = server.admin.subscribe('sharedos.v1.*.feed.audit.>', { max: 2 });
    await server.admin.flush();
    await server.admin.request('sharedos.v1.~bi5z.audit.denied.tool.invoked', 'one');
    await server.admin.request('sharedos.v1.~bi5z.audit.denied.tool.invoked', 'two');
    const heard = [];
    for await (const message of feed)
      heard.push([message.subject, message.string(), message.headers?.get('Nats-Sequence'), message.headers?.get('Nats-Last-Sequence')]);
    expect(heard).toEqual([
      ['sharedos.v1.~bi5z.feed.audit.denied.tool.invoked', 'one', '1', '0'],
      ['sharedos.v1.~bi5z.feed.audit.denied.tool.invoked', 'two', '2', '1'],
    ]);
  });
});
