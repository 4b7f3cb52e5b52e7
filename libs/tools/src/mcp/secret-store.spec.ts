import { mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ok } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SECRETS_MAX, sealedFiles, secretKeyOf } from './secret-store.ts';

const alice = { namespaceId: 'demo', owner: { kind: 'human', userId: 'alice' }, server: 'crm' } as const;
const bob = { ...alice, owner: { kind: 'human', userId: 'bob' } } as const;
const key = Buffer.alloc(32, 1);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'secrets-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const store = (with_ = key) => sealedFiles({ folder, key: with_ });
const placeOf = (who: string, name = 'token.sealed') => join(folder, 'demo/human', who, 'crm', name);
const kept = async (scope: Parameters<ReturnType<typeof store>['read']>[0] = alice) => {
  const read = await store().read(scope);
  return read.ok ? Object.fromEntries(read.value) : read.error;
};

describe('secrets in sealed files', () => {
  it('are none until one is kept', async () => expect(await kept()).toEqual({}));

  it('are read back by any process that has the key', async () => {
    await store().put(alice, 'token', 'first');
    await store().put(alice, 'token', 'second');
    await store().put(alice, 'other', 'ü');
    expect(await kept()).toEqual({ token: 'second', other: 'ü' });
  });

  it('are nobody else’s', async () => {
    await store().put(alice, 'token', 'of alice');
    expect(await kept(bob)).toEqual({});
    expect(await kept({ ...alice, server: 'mail' })).toEqual({});
  });

  it('lie on the disk as nothing that could be read, for their user alone', async () => {
    await store().put(alice, 'token', 'a secret of alice');
    expect(readFileSync(placeOf('alice')).includes('secret of alice')).toBe(false);
    expect(statSync(placeOf('alice')).mode & 0o077).toBe(0);
  });

  it('do not open in another place, with another key, or changed', async () => {
    await store().put(alice, 'token', 'of alice');
    await store().put(bob, 'token', 'of bob');
    expect(await store(Buffer.alloc(32, 2)).read(alice)).toEqual({ ok: false, error: 'unavailable' });
    const file = readFileSync(placeOf('alice'));
    renameSync(placeOf('alice'), placeOf('bob'));
    expect(await kept(bob)).toBe('unavailable');
    file[file.byteLength - 1] = (file.at(-1) ?? 0) ^ 1;
    writeFileSync(placeOf('alice'), file);
    expect(await kept()).toBe('unavailable');
  });

  it('are forgotten one by one, or all of a server', async () => {
    for (const name of ['a', 'b', 'c']) await store().put(alice, name, name);
    await store().forget(alice, 'b');
    expect(await kept()).toEqual({ a: 'a', c: 'c' });
    expect(await store().forget(alice, 'b')).toEqual(ok(undefined));
    await store().clear(alice);
    expect(await kept()).toEqual({});
  });

  it('are no more than a server may have', async () => {
    for (let n = 0; n < SECRETS_MAX; n += 1) await store().put(alice, `s${n}`, 'x');
    expect(await store().put(alice, 'one-more', 'x')).toEqual({ ok: false, error: 'too_many' });
    expect(await store().put(alice, 's0', 'y')).toEqual(ok(undefined));
    expect(readdirSync(join(folder, 'demo/human/alice/crm')).length).toBe(SECRETS_MAX);
  });
});

describe('the key of secrets', () => {
  it('is 32 bytes as base64', () => {
    expect(secretKeyOf(`${key.toString('base64')}\n`)).toEqual(key);
    for (const text of ['', 'secret', Buffer.alloc(31).toString('base64')]) expect(() => secretKeyOf(text)).toThrow('32 bytes');
  });
});
