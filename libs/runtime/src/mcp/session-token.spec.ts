import { createHmac } from 'node:crypto';
import { canonicalJson, instantOf, sha256 } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { ContractError } from '../errors.ts';
import { type SessionClaims, mintSessionToken, verifySessionToken } from './session-token.ts';

const KEY = Buffer.alloc(32, 7);
const CLAIMS: SessionClaims = {
  executionId: 'exec-1',
  namespaceId: 'north',
  actor: 'agent:scout',
  catalogHash: sha256('catalogue'),
  expiresAt: '2027-03-10T10:05:00.000Z',
};
const { expiresAt: _, ...EXPECTED } = CLAIMS;
const NOW = instantOf('2027-03-10T10:00:00Z') ?? NaN;

const verdict = (token: string, changes: Partial<Parameters<typeof verifySessionToken>[1]> = {}): string => {
  const verified = verifySessionToken(token, { key: KEY, now: NOW, expected: EXPECTED, ...changes });
  return verified.ok ? 'valid' : verified.error;
};
/** A token that somebody with the key made of any text at all. */
const signedText = (text: string): string => {
  const payload = Buffer.from(text).toString('base64url');
  return `${payload}.${createHmac('sha256', KEY).update(payload).digest('base64url')}`;
};
const [payload, signature] = mintSessionToken(CLAIMS, KEY).split('.') as [string, string];

describe('a session token', () => {
  it('is the canonical claims and their authentication, in two parts', () => {
    expect(mintSessionToken(CLAIMS, KEY)).toBe(signedText(canonicalJson(CLAIMS)));
    expect(verifySessionToken(mintSessionToken(CLAIMS, KEY), { key: KEY, now: NOW, expected: EXPECTED })).toEqual({
      ok: true,
      value: CLAIMS,
    });
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['one part', payload],
    ['three parts', `${payload}.${signature}.x`],
    ['another alphabet', `${payload}=.${signature}`],
    ['a short signature', `${payload}.${signature.slice(1)}`],
    ['a length that is no token’s', `${'x'.repeat(8_192)}.${signature}`],
  ])('is malformed with %s', (__, token) => expect(verdict(token)).toBe('malformed'));

  it.each<[string, string]>([
    ['not JSON', 'x'],
    ['a claim too few', canonicalJson(EXPECTED)],
    ['a claim too many', canonicalJson({ ...CLAIMS, admin: true })],
    ['a claim of another kind', canonicalJson({ ...CLAIMS, expiresAt: 7 })],
    ['a claim named twice', canonicalJson(CLAIMS).replace('{', '{"actor":"agent:other",')],
  ])('is malformed when what was signed is %s', (__, text) => expect(verdict(signedText(text))).toBe('malformed'));

  it('is not believed under another signature, another key or other claims', () => {
    const other = Buffer.from(canonicalJson({ ...CLAIMS, actor: 'agent:other' })).toString('base64url');
    expect(verdict(`${other}.${signature}`)).toBe('signature_mismatch');
    expect(verdict(`${payload}.${signature}`, { key: Buffer.alloc(32, 8) })).toBe('signature_mismatch');
    expect(verdict(`${payload}.${'A'.repeat(43)}`)).toBe('signature_mismatch');
  });

  it('ends at its instant', () => {
    const end = instantOf(CLAIMS.expiresAt) ?? NaN;
    expect(verdict(mintSessionToken(CLAIMS, KEY), { now: end - 1 })).toBe('valid');
    expect(verdict(mintSessionToken(CLAIMS, KEY), { now: end })).toBe('expired');
    expect(verdict(mintSessionToken(CLAIMS, KEY), { now: NaN })).toBe('expired');
  });

  it.each<[string, Partial<typeof EXPECTED>]>([
    ['execution', { executionId: 'exec-2' }],
    ['namespace', { namespaceId: 'south' }],
    ['actor', { actor: 'human:scout' }],
    ['catalogue', { catalogHash: sha256('another') }],
  ])('is not for a session of another %s', (__, other) =>
    expect(verdict(mintSessionToken(CLAIMS, KEY), { expected: { ...EXPECTED, ...other } })).toBe('claims_mismatch'),
  );

  it('says the first of its faults', () => {
    const end = instantOf(CLAIMS.expiresAt) ?? NaN;
    const other = { ...EXPECTED, actor: 'agent:other' };
    const faults = [
      { reason: verdict(payload, { now: end, expected: other }) },
      { reason: verdict(`${payload}.${'A'.repeat(43)}`, { now: end, expected: other }) },
      { reason: verdict(`${payload}.${signature}`, { now: end, expected: other }) },
      { reason: verdict(`${payload}.${signature}`, { expected: other }) },
    ];
    expect(faults).toEqual([
      { reason: 'malformed' },
      { reason: 'signature_mismatch' },
      { reason: 'expired' },
      { reason: 'claims_mismatch' },
    ]);
  });

  it('is made of whole claims and with a key of 32 bytes', () => {
    expect(() => mintSessionToken(CLAIMS, Buffer.alloc(31))).toThrow(ContractError);
    expect(() => mintSessionToken({ ...CLAIMS, actor: '' }, KEY)).toThrow(ContractError);
  });
});
