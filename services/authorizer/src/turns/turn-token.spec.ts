import { instantOf, revisionOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { NOON, alice, contextAt } from '../authorizer.fixture.ts';
import { TurnTokens, contextHash } from './turn-token.ts';

const SECRET = 'a secret of more than thirty-two characters';
const tokens = new TurnTokens(SECRET);
const context = contextAt(NOON);
const claims = {
  turnId: 'turn-1',
  contextHash: contextHash(context),
  revision: revisionOf('log', 7),
  admittedAt: NOON,
  validUntil: '2026-01-01T12:01:00.000Z',
};
const token = tokens.sign(claims);
const noon = instantOf(NOON) ?? NaN;
const [payload = '', mac = ''] = token.split('.');
const signedBy = (secret: string): string => new TurnTokens(secret).sign(claims);

describe('the token of an open turn', () => {
  it('gives back what was promised, at any instant of the turn', () => {
    expect(tokens.verify(token, context, noon)).toEqual({ ok: true, value: claims });
    expect(tokens.verify(token, contextAt('2026-01-01T12:00:30Z'), noon + 59_999)).toEqual({ ok: true, value: claims });
  });

  it('is the same however its claims are ordered', () => {
    expect(tokens.sign(Object.fromEntries(Object.entries(claims).reverse()) as never)).toBe(token);
  });

  it.each([
    ['empty', '', 'malformed'],
    ['without a signature', payload, 'malformed'],
    ['with a part too many', `${token}.x`, 'malformed'],
    ['cut off', token.slice(0, -1), 'signature_mismatch'],
    ['with an empty signature', `${payload}.`, 'signature_mismatch'],
    [
      'of another turn with this signature',
      `${Buffer.from(JSON.stringify({ ...claims, turnId: 'turn-2' })).toString('base64url')}.${mac}`,
      'signature_mismatch',
    ],
    ['spelled otherwise', `${payload}=.${mac}`, 'signature_mismatch'],
    ['with a garbled signature of the same length', `${payload}.${'A'.repeat(mac.length)}`, 'signature_mismatch'],
    ['with a signature that is longer in bytes', `${payload}.${'é'.repeat(mac.length)}`, 'signature_mismatch'],
    ['signed with another secret', signedBy(`${SECRET}.`), 'signature_mismatch'],
  ])('is refused %s', (_, given, error) => {
    expect(tokens.verify(given, context, noon)).toEqual({ ok: false, error });
  });

  it.each([
    ['another actor', { actor: alice }],
    ['another authority', { authority: { kind: 'human', userId: 'carol' } }],
    ['another owner', { owner: { kind: 'human', userId: 'carol' } }],
    ['another purpose', { purpose: 'p2' }],
    ['another namespace', { namespaceId: 'w2' }],
    ['another trace', { traceId: 'trace-2' }],
    ['further tool namespaces', { enabledToolNamespaces: ['files', 'repo'] }],
  ] as const)('is refused for %s', (_, more) => {
    expect(tokens.verify(token, contextAt(NOON, more as never), noon)).toEqual({ ok: false, error: 'context_mismatch' });
  });

  it('is refused from the very end of its turn on', () => {
    expect(tokens.verify(token, context, noon + 60_000)).toEqual({ ok: false, error: 'expired' });
    expect(tokens.verify(token, context, Infinity)).toEqual({ ok: false, error: 'expired' });
  });
});
