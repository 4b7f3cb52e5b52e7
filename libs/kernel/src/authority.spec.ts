import { type CapabilityGrant, byCodeUnit, canonicalJson, sha256 } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { holdAuthority, loadAuthority } from './authority.ts';
import { answer, at, authorityOf, bob, carol, context, dave, grantOf, parsedGrant, read } from './testing/base-world.ts';

const refusal = (material: unknown, grantLimit?: number) => {
  const loaded = loadAuthority(context(), material, grantLimit === undefined ? {} : { grantLimit });
  return loaded.ok ? undefined : loaded.error;
};
const many = (count: number): CapabilityGrant[] => Array.from({ length: count }, (_, index) => grantOf(`g-${index}`));

describe('authority is unavailable as a whole', () => {
  it.each([[undefined], [null], [{}], ['[]'], [{ length: 0 }]])('when the source returned no list but %j', (material) =>
    expect(refusal(material)).toEqual({ code: 'invalid_grant_material' }),
  );
  it('when there is a hole in the list', () => {
    const holed = [grantOf()];
    holed[2] = grantOf('h');
    expect(refusal(holed)).toEqual({ code: 'invalid_grant_material' });
  });
  it('when one grant has an unknown field', () =>
    expect(refusal([grantOf(), { ...grantOf('h'), priority: 1 }])).toEqual({ code: 'invalid_grant_material' }));
  it('when one grant sets a field to nothing', () =>
    expect(refusal([{ ...grantOf(), parentGrantId: undefined }])).toEqual({ code: 'invalid_grant_material' }));
  it('when one grant starts after its end', () =>
    expect(refusal([grantOf('g', { notBefore: at('11:00:00'), expiresAt: at('10:30:00') })])).toEqual({ code: 'invalid_grant_material' }));
  it('when two grants share an id', () => expect(refusal([grantOf(), grantOf()])).toEqual({ code: 'invalid_grant_material' }));
  it('when two ids are the same once trimmed', () =>
    expect(refusal([grantOf('g'), grantOf(' g ')])).toEqual({ code: 'invalid_grant_material' }));
  it('when one grant is of another namespace', () =>
    expect(refusal([grantOf(), grantOf('h', { namespaceId: 'w2' })])).toEqual({
      code: 'grant_scope_mismatch',
      detail: { grantId: 'h', reason: 'namespace' },
    }));
  it('when one grant is held by another', () =>
    expect(refusal([grantOf('h', { subject: dave })])).toEqual({
      code: 'grant_scope_mismatch',
      detail: { grantId: 'h', reason: 'subject' },
    }));
  it('when one grant is issued by another', () =>
    expect(refusal([grantOf('h', { issuer: carol })])).toEqual({
      code: 'grant_scope_mismatch',
      detail: { grantId: 'h', reason: 'issuer' },
    }));
  it('for the first bad grant in the order returned', () =>
    expect(refusal([grantOf('h', { issuer: carol }), { nonsense: true }])).toMatchObject({ code: 'grant_scope_mismatch' }));
  it('when there are more than 256 grants, unread', () =>
    expect(refusal([...many(256), 'no grant'])).toEqual({ code: 'grant_limit_exceeded' }));
  it('when there are more than its host allows', () => expect(refusal(many(3), 2)).toEqual({ code: 'grant_limit_exceeded' }));
});

describe('authority is resolved', () => {
  it('with 256 grants', () => expect(refusal(many(256))).toBeUndefined());
  it('with none', () => expect(authorityOf([]).snapshot).toMatchObject({ grantIds: [], grantCount: 0, hash: sha256('[]') }));
  it('with expired, revoked and other-purpose grants, which are judged one by one', () =>
    expect(
      refusal([
        grantOf('a', { expiresAt: at('09:30:00') }),
        grantOf('b', { revokedAt: at('09:30:00') }),
        grantOf('c', { purposes: ['p2'] }),
      ]),
    ).toBeUndefined());
  it('in the order of its source, with sorted ids beside', () => {
    const authority = authorityOf([grantOf('b'), grantOf('a')]);
    expect(authority.grants.map(({ grant }) => grant.id)).toEqual(['b', 'a']);
    expect(authority.snapshot).toMatchObject({ grantIds: ['a', 'b'], grantCount: 2, loadedAt: context().now });
  });
  it('as a copy that a later edit of the source does not reach', () => {
    const source = [grantOf()];
    const authority = authorityOf(source);
    source[0]?.capabilities.push({ resource: { namespace: 'files', path: [] }, actions: ['*'], scope: 'descendants' });
    expect(authority.grants[0]?.grant.capabilities).toHaveLength(1);
  });
  it('the same from grants read before', () => {
    const grants = [grantOf('a'), grantOf('b')];
    const held = holdAuthority(context(), grants.map(parsedGrant));
    expect(held.ok && held.value.snapshot).toEqual(authorityOf(grants).snapshot);
  });
  it("but not from grants read before that are somebody else's", () =>
    expect(holdAuthority(context({ actor: dave }), [parsedGrant(grantOf())])).toEqual({
      ok: false,
      error: { code: 'grant_scope_mismatch', detail: { grantId: 'g', reason: 'subject' } },
    }));
  it('with purposes as trimmed', () => expect(answer([grantOf('g', { purposes: ['p1 '] })], read(['Work']))).toBe('allowed g'));
});

describe('the hash of an authority', () => {
  const hash = (...grants: CapabilityGrant[]): string => authorityOf(grants).snapshot.hash;
  it('is that of the sorted list of the canonical texts of its grants', () => {
    const grants = [grantOf('b'), grantOf('a')];
    expect(hash(...grants)).toBe(sha256(canonicalJson(grants.map(canonicalJson).sort(byCodeUnit))));
  });
  it('does not depend on the order of the source', () => expect(hash(grantOf('a'), grantOf('b'))).toBe(hash(grantOf('b'), grantOf('a'))));
  it('changes with every field, metadata too', () => expect(hash(grantOf('a', { metadata: { note: 1 } }))).not.toBe(hash(grantOf('a'))));
  it('changes with a revocation on the grant', () =>
    expect(hash(grantOf('a', { revokedAt: at('11:00:00') }))).not.toBe(hash(grantOf('a'))));
  it('does not depend on when it is judged', () => {
    const expiring = [grantOf('a', { expiresAt: at('10:05:00'), subject: bob })];
    expect(authorityOf(expiring, context({ now: at('10:06:00') })).snapshot.hash).toBe(authorityOf(expiring).snapshot.hash);
  });
});
