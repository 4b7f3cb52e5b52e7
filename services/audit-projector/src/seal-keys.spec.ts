import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { NOON, newSealKey } from './record.fixture.ts';
import { SealKeys, parseSealKeys } from './seal-keys.ts';

const [old, fresh] = [newSealKey('old'), newSealKey('fresh')];
const unsigned = { version: '1', namespaceId: 'w1', count: 3, sequence: 7, chain: 'ab'.repeat(32), at: NOON } as const;

describe('the keys of the proof', () => {
  it('sign with the first private one, and know what each of them signed', () => {
    const before = new SealKeys([old.private]);
    const after = new SealKeys([fresh.private, old.public]);
    const sealed = before.seal(unsigned);
    expect(sealed.head.keyId).toBe('old');
    expect(after.seal(unsigned).head.keyId).toBe('fresh');
    expect(after.check(sealed.head, sealed.signature)).toBe('valid');
  });

  it('believe no other head, no other signature and no other key', () => {
    const keys = new SealKeys([fresh.private]);
    const { head, signature } = keys.seal(unsigned);
    expect(keys.check({ ...head, count: 4 }, signature)).toBe('invalid');
    expect(keys.check(head, `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`)).toBe('invalid');
    expect(keys.check(head, '')).toBe('invalid');
    expect(keys.check({ ...head, keyId: 'old' }, signature)).toBe('unknown_key');
    const imposter = new SealKeys([{ ...newSealKey('fresh').private }]).seal(unsigned);
    expect(keys.check(imposter.head, imposter.signature)).toBe('invalid');
  });

  it.each([
    ['nothing to sign with', [old.public], /private part/],
    ['one id twice', [old.private, { ...fresh.public, keyId: 'old' }], /twice/],
    ['no key at all', [{ keyId: 'old', der: 'AAAA' }], /"old".*cannot be read/],
    [
      'a key of another kind',
      [
        {
          keyId: 'rsa',
          der: generateKeyPairSync('rsa', { modulusLength: 2048 })
            .privateKey.export({ format: 'der', type: 'pkcs8' })
            .toString('base64url'),
        },
      ],
      /no Ed25519/,
    ],
  ])('are refused with %s', (_, settings, why) => {
    expect(() => new SealKeys(settings)).toThrow(why);
  });

  it('make sessions that only a holder of the same key can read', () => {
    const session = new SealKeys([old.private]).sessionOf({ until: 1 });
    expect(new SealKeys([old.private, fresh.public]).claimsOf(session)).toEqual({ until: 1 });
    expect(new SealKeys([fresh.private]).claimsOf(session)).toBeUndefined();
    expect(new SealKeys([old.private]).claimsOf(`${session}x`)).toBeUndefined();
    expect(new SealKeys([old.private]).claimsOf('nonsense')).toBeUndefined();
  });

  it('are written in one line, and anything else is refused', () => {
    expect(parseSealKeys('2026:MC4C, older.key:MCow_-')).toEqual([
      { keyId: '2026', der: 'MC4C' },
      { keyId: 'older.key', der: 'MCow_-' },
    ]);
    for (const text of ['', '2026', '2026:', ':MC4C', '2026:MC4C,', '2026:MC+C', 'a b:MC4C']) expect(parseSealKeys(text)).toBeUndefined();
  });
});
