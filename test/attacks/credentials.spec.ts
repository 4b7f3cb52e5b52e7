import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Bus,
  BusConnectError,
  OPERATOR,
  PROVISIONER,
  connectBus,
  newUserKey,
  principalUser,
  provision,
  serviceInboxPrefix,
} from '@sharedos/bus';
import { type Address, SERVICE_NAMES, inboxPrefix, principalSubject } from '@sharedos/contracts';
import { connect, nkeyAuthenticator } from 'nats';
import { startOwnNats, waitFor } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type KeyedBroker, startKeyedBroker } from '../support/keyed-broker.ts';

const ALICE = { kind: 'human', userId: 'alice' } as const satisfies Address;
const SCOUT = { kind: 'agent', agentId: 'scout' } as const satisfies Address;
const USERS = [...SERVICE_NAMES, PROVISIONER, OPERATOR] as const;

let broker: KeyedBroker;
const open: Bus[] = [];

beforeAll(async () => {
  broker = await startKeyedBroker([
    ['tenant', 'add', 'acme', '--root', 'human:alice'],
    ['principal', 'add', 'acme', 'human:alice'],
    ['principal', 'add', 'acme', 'agent:scout'],
  ]);
});
afterEach(async () => {
  for (const bus of open.splice(0)) await bus.close();
});
afterAll(() => broker?.end());

const connected = async (
  user: string,
  pass: string,
  prefix: string,
  changed: { url?: string; caFile?: string | undefined } = {},
): Promise<Bus> => {
  const { url = broker.url } = changed;
  const caFile = 'caFile' in changed ? changed.caFile : broker.caFile;
  const bus = await connectBus({
    servers: url,
    user,
    pass,
    inboxPrefix: prefix,
    name: user,
    connectTimeoutMs: 3_000,
    ...(caFile === undefined ? {} : { caFile }),
  });
  open.push(bus);
  return bus;
};
const asService = async (user: (typeof USERS)[number], seed?: string): Promise<Bus> =>
  connected(user, seed ?? (await broker.seedOf(user)), serviceInboxPrefix(user));
const asPrincipal = async (who: Address, seed?: string): Promise<Bus> => {
  const user = principalUser('acme', who);
  return connected(user, seed ?? (await broker.seedOf(user)), inboxPrefix('acme', who));
};
const refused = (connecting: Promise<unknown>): Promise<void> => expect(connecting).rejects.toThrow(BusConnectError);

describe('a broker with the configuration of "sharedos auth"', () => {
  it('takes everybody by a key, over TLS, and holds each to its rights', async () => {
    const made = await provision({
      servers: broker.url,
      caFile: broker.caFile,
      user: PROVISIONER,
      pass: await broker.seedOf(PROVISIONER),
    });
    expect(made).toEqual({ ok: true, value: undefined });
    for (const user of USERS) expect((await asService(user)).connected).toBe(true);
    const scout = await asPrincipal(SCOUT);
    expect((await scout.subscribe('sharedos.v1.>', () => undefined)).ok).toBe(false);
  });
  it('is not spoken to without TLS, and says nothing to who does not believe its certificate', async () => {
    const seed = await broker.seedOf('authorizer');
    const plain = connect({
      servers: broker.url,
      tls: null,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)),
      reconnect: false,
    });
    await expect(plain).rejects.toThrow();
    await refused(connected('authorizer', seed, serviceInboxPrefix('authorizer'), { caFile: undefined }));
  });
  it('is not taken for ours by its address alone: without TLS there is no connection, whatever it says', async () => {
    const other = await startPlain();
    await refused(connected('authorizer', await broker.seedOf('authorizer'), serviceInboxPrefix('authorizer'), { url: other.url }));
    await other.end();
  });
  it.each([
    ['a key that it was never told', () => newUserKey().seed],
    ['a password', () => 'guessed'],
    ['no password', () => ''],
  ])('refuses %s', async (_, pass) => {
    for (const user of ['authorizer', principalUser('acme', ALICE)])
      await refused(connected(user, pass(), serviceInboxPrefix('authorizer')));
  });
  it('knows who somebody is by the key alone, and not by the name they give', async () => {
    const scout = await connected(
      principalUser('acme', ALICE),
      await broker.seedOf(principalUser('acme', SCOUT)),
      inboxPrefix('acme', SCOUT),
    );
    const spoken = scout.nats.request(principalSubject('turn.get', 'acme', ALICE), '', { timeout: 2_000 });
    await expect(spoken).rejects.toThrow(/Permissions Violation/);
  });
});

describe('a key that is changed', () => {
  it('works beside the new one until the rotation is finished, and then ends', async () => {
    const old = await broker.seedOf('messaging-router');
    expect((await broker.changed('rotate', 'messaging-router')).code).toBe(0);
    const renewed = await broker.seedOf('messaging-router');
    expect(renewed).not.toBe(old);
    const [before, after] = await waitFor(
      'both keys to be taken',
      () => Promise.all([asService('messaging-router', old), asService('messaging-router', renewed)]).catch(() => undefined),
      20_000,
    );
    expect([before?.connected, after?.connected]).toEqual([true, true]);
    expect((await broker.changed('rotate', 'messaging-router', '--finish')).code).toBe(0);
    await waitFor('the old key to end', () => before?.connected === false, 20_000);
    await refused(asService('messaging-router', old));
    expect(after?.connected).toBe(true);
  });
  it('is not changed twice at once', async () => {
    await broker.changed('rotate', 'acme', 'agent:scout');
    expect(await broker.auth('rotate', 'acme', 'agent:scout')).toMatchObject({ code: 1, err: expect.stringContaining('--finish') });
    await broker.changed('rotate', 'acme', 'agent:scout', '--finish');
  });
});

describe('a principal whose key is revoked', () => {
  it('loses its live connection, is heard no more, and does not get in again; nobody else notices', async () => {
    const seed = await broker.seedOf(principalUser('acme', SCOUT));
    // The broker may still be reading what the test before changed, and then it lets nobody in.
    const alice = await waitFor('the broker to have read its users', () => asPrincipal(ALICE).catch(() => undefined), 20_000);
    let lost = 0;
    alice.watch(() => (lost += 1));
    const scout = await waitFor('its key to be taken', () => asPrincipal(SCOUT, seed).catch(() => undefined), 20_000);
    const gone = new Promise<number>((resolve) => scout.watch((isConnected) => (isConnected ? undefined : resolve(performance.now()))));
    const heard: string[] = [];
    const executor = await asService('tool-executor');
    await executor.subscribe('sharedos.v1.*.turn.get.*.*', ({ subject }) => heard.push(subject));
    const asked = principalSubject('turn.get', 'acme', SCOUT);
    scout.nats.publish(asked, '', { reply: `${inboxPrefix('acme', SCOUT)}.x` });
    await waitFor('it to be heard before', () => heard.length === 1, 10_000);

    const told = performance.now();
    expect((await broker.changed('revoke', 'acme', 'agent:scout')).code).toBe(0);
    const tookMs = (await gone) - told;
    process.stdout.write(`a revoked key lost its live connection after ${Math.round(tookMs)} ms\n`);
    expect(scout.connected).toBe(false);
    scout.nats.publish(asked, '', { reply: `${inboxPrefix('acme', SCOUT)}.x` });
    await refused(asPrincipal(SCOUT, seed));
    await executor.flush(5_000);
    expect(heard).toHaveLength(1);
    expect([alice.connected, lost]).toEqual([true, 0]);
    // Its name stays, and is not given to somebody else by mistake.
    expect(await broker.auth('principal', 'add', 'acme', 'agent:scout')).toMatchObject({
      code: 1,
      err: expect.stringContaining('known already'),
    });
    await expect(broker.seedOf(principalUser('acme', SCOUT))).rejects.toThrow();
  });
  it('can be given a new key', async () => {
    expect((await broker.changed('rotate', 'acme', 'agent:scout')).code).toBe(0);
    const scout = await waitFor('the new key to be taken', () => asPrincipal(SCOUT).catch(() => undefined), 20_000);
    expect(scout.connected).toBe(true);
  });
});

describe('a tenant and a principal that are added while it runs', () => {
  it('connect once the broker was told, and nobody else notices', async () => {
    const alice = await asPrincipal(ALICE);
    let lost = 0;
    alice.watch(() => (lost += 1));
    expect(await broker.auth('principal', 'add', 'globex', 'human:bob')).toMatchObject({
      code: 1,
      err: expect.stringContaining('no tenant'),
    });
    expect((await broker.auth('tenant', 'add', 'globex', '--root', 'human:bob')).code).toBe(0);
    expect((await broker.changed('principal', 'add', 'globex', 'human:bob', '--auditor')).code).toBe(0);
    const bob: Address = { kind: 'human', userId: 'bob' };
    const user = principalUser('globex', bob);
    const seed = await broker.seedOf(user);
    const connecting = () => connected(user, seed, inboxPrefix('globex', bob)).catch(() => undefined);
    expect((await waitFor('the broker to take it', connecting, 20_000)).connected).toBe(true);
    expect(lost).toBe(0);
    expect(JSON.parse(await readFile(join(broker.folder, 'roots.json'), 'utf8'))).toEqual({ acme: [ALICE], globex: [bob] });
  });
});

describe('the secrets of "sharedos auth"', () => {
  const secrets = (): string => join(broker.folder, 'secrets');
  it('are in a folder of their owner, and nowhere else', async () => {
    expect((await stat(secrets())).mode & 0o777).toBe(0o700);
    const files = await readdir(secrets());
    const texts = await Promise.all(
      files
        .filter((file) => file !== 'ca.pem' && file !== 'broker.pem')
        .map(async (file) => (await readFile(join(secrets(), file), 'utf8')).trim()),
    );
    expect(texts.length).toBeGreaterThan(USERS.length + 5);
    for (const open of ['nats.conf', 'auth.json', 'roots.json']) {
      const text = await readFile(join(broker.folder, open), 'utf8');
      expect(texts.filter((secret) => text.includes(secret))).toEqual([]);
    }
  });
  it('are not among what the command prints, nor in what it refuses', async () => {
    const said = [
      await broker.auth('list'),
      await broker.auth('list', '--json'),
      await broker.auth('rotate', 'audit-projector', '--json'),
      await broker.auth('rotate', 'audit-projector'),
      await broker.auth('rotate', 'nobody'),
      await broker.auth('init'),
    ];
    const text = said.map(({ out, err }) => out + err).join('\n');
    expect(text).not.toMatch(/\bS[A-Z][A-Z2-7]{56}\b/);
    expect(said.map(({ code }) => code)).toEqual([0, 0, 0, 1, 2, 1]);
  });
  it('that are there are never replaced by another "init"', async () => {
    const before = await readFile(join(broker.folder, 'auth.json'), 'utf8');
    expect(await broker.auth('init')).toMatchObject({ code: 1, err: expect.stringContaining('nothing was changed') });
    expect(await readFile(join(broker.folder, 'auth.json'), 'utf8')).toBe(before);
  });
});

/** A broker without TLS, as somebody on the way could put in the place of ours. */
const startPlain = async (): Promise<{ readonly url: string; end(): Promise<void> }> => {
  const own = await startOwnNats(({ name, host, port }) => `server_name: "${name}"\nlisten: "${host}:${port}"\n`);
  return { url: own.url.replace('nats://', 'tls://'), end: own.end };
};
