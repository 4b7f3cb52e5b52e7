import type { CapabilityGrant } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, decideSync } from './asking.ts';
import { type ChainVerdict, validateChain } from './chain.ts';
import {
  NOW,
  alice,
  answer,
  at,
  bob,
  capability,
  carol,
  context,
  dave,
  decided,
  grantOf,
  instant,
  parsedGrant,
  read,
  worldOf,
} from './testing/base-world.ts';

type Changes = Parameters<typeof grantOf>[1];

/** Dave holds the root from Alice and passed part of it on to Bob. */
const root = (changes: Changes = {}): CapabilityGrant =>
  grantOf('r', { subject: dave, issuedAt: at('08:00:00'), delegationDepth: 1, ...changes });
const child = (changes: Changes = {}): CapabilityGrant => grantOf('c', { issuer: dave, parentGrantId: 'r', ...changes });

const validate = (
  presented: CapabilityGrant,
  ancestors: readonly CapabilityGrant[],
  { now = NOW, world, ancestorsMax }: { now?: number; world?: World; ancestorsMax?: number } = {},
): ChainVerdict =>
  decideSync(
    validateChain(parsedGrant(presented), { context: context(), admittedAt: NOW, now }, ancestorsMax),
    world ?? worldOf({ ancestors }).world,
  );
const fault = (...asked: Parameters<typeof validate>): string => {
  const verdict = validate(...asked);
  return verdict.status === 'valid' ? 'valid' : `${verdict.status} ${verdict.code} at ${verdict.grantId}`;
};

describe('a chain is valid', () => {
  it('without ancestors, and then nobody is asked', () =>
    expect(validate(grantOf(), [], { world: {} })).toEqual({ status: 'valid', chain: [] }));
  it('when each link permits the next, nearest first', () => {
    const middle = grantOf('m', { subject: dave, issuer: carol, parentGrantId: 'top', delegationDepth: 1, issuedAt: at('08:30:00') });
    const top = grantOf('top', { subject: carol, issuedAt: at('08:00:00'), delegationDepth: 2 });
    expect(validate(child({ parentGrantId: 'm' }), [middle, top])).toEqual({ status: 'valid', chain: ['m', 'top'] });
  });
  it('when a start is left out and the issue lies inside', () =>
    expect(fault(child(), [root({ notBefore: at('08:30:00') })])).toBe('valid'));
  it('when the ancestor was stamped as revoked after admission', () =>
    expect(fault(child(), [root({ revokedAt: at('10:05:00') })], { now: instant('10:10:00') })).toBe('valid'));
  it('when an owner is pinned that the context names anyway', () =>
    expect(fault(child({ capabilities: [capability(['Work'], { owner: alice })] }), [root()])).toBe('valid'));
});

describe('a chain is unverified', () => {
  it('without a resolver', () => expect(fault(child(), [], { world: {} })).toBe('unverified resolver_unavailable at c'));
  it('without a resolver, even where no ancestor is allowed', () => {
    expect(fault(child(), [], { world: {}, ancestorsMax: 0 })).toBe('unverified resolver_unavailable at c');
    expect(fault(child(), [root()], { ancestorsMax: 0 })).toBe('invalid chain_too_long at c');
  });
  it('when the resolver fails', () =>
    expect(fault(child(), [], { world: { ancestor: () => 'failed' } })).toBe('unverified resolver_failed at c'));
  it('when an ancestor is not found', () => expect(fault(child(), [])).toBe('unverified parent_not_found at c'));
  it('when the resolver answers with another grant than asked for', () =>
    expect(fault(child(), [], { world: { ancestor: () => ({ found: parsedGrant(root({ id: 'other' })) }) } })).toBe(
      'unverified resolver_failed at c',
    ));
});

describe('a chain is invalid', () => {
  it('when the parent is of another namespace', () => {
    const leak = { ancestor: () => ({ found: parsedGrant(root({ namespaceId: 'w2' })) }) };
    expect(fault(child(), [], { world: leak })).toBe('invalid namespace_mismatch at r');
  });
  it('when its issuer does not hold the parent', () =>
    expect(fault(child({ issuer: carol }), [root()])).toBe('invalid issuer_not_parent_subject at r'));
  it('when the parent was revoked', () =>
    expect(fault(child(), [root({ revokedAt: at('09:59:59') })])).toBe('invalid parent_inactive at r'));
  it('when the parent expires between admission and now, although it does not itself', () =>
    expect(fault(child({ expiresAt: at('10:05:00') }), [root({ expiresAt: at('10:05:00') })], { now: instant('10:05:00') })).toBe(
      'invalid parent_inactive at r',
    ));
  it('when the parent is for another purpose', () =>
    expect(fault(child({ purposes: ['p2'] }), [root({ purposes: ['p2'] })])).toBe('invalid parent_inactive at r'));
  it('when the parent states no depth', () => {
    const { delegationDepth: _, ...constraints } = root().constraints;
    expect(fault(child(), [{ ...root(), constraints }])).toBe('invalid delegation_not_permitted at r');
  });
  it('when the parent has no depth left', () =>
    expect(fault(child(), [root({ delegationDepth: 0 })])).toBe('invalid delegation_not_permitted at r'));
  it('when its depth is not smaller', () =>
    expect(fault(child({ delegationDepth: 1 }), [root()])).toBe('invalid delegation_depth_exceeded at r'));
  it('when the parent is bounded', () => expect(fault(child(), [root({ maxUses: 9 })])).toBe('invalid bounded_parent_not_delegable at r'));
  it.each([
    ['is wider in path', capability([])],
    ['is wider in scope', capability(['A'])],
    ['lists a star where the parent lists names', capability(['Work'], { actions: ['*'] })],
    ['lists an action not held', capability(['Work'], { actions: ['read', 'delete'] })],
    ['is over another owner', capability(['Work'], { owner: carol })],
    ['is in another namespace', capability(['Work'], { namespace: 'repo' })],
  ])('when a capability %s', (_, wide) => {
    const capabilities = [capability(['Work']), capability(['A'], { scope: 'exact' })];
    expect(fault(child({ capabilities: [wide] }), [root({ capabilities })])).toBe('invalid capability_widened at r');
  });
  it('when it names no end under a parent that ends', () =>
    expect(fault(child(), [root({ expiresAt: at('11:00:00') })])).toBe('invalid constraints_widened at r'));
  it('when it names no purpose under a parent that does', () =>
    expect(fault(child(), [root({ purposes: ['p1'] })])).toBe('invalid constraints_widened at r'));
  it('when it is dated before the parent', () =>
    expect(fault(child({ issuedAt: at('07:59:59') }), [root()])).toBe('invalid constraints_widened at r'));
  it('when it comes back to the grant presented', () => {
    const loop = root({ parentGrantId: 'c', issuer: bob });
    expect(fault(child(), [loop, child({ delegationDepth: 9 })])).toBe('invalid chain_cycle at c');
  });
  it('when it comes back to an ancestor', () => {
    const loop = root({ parentGrantId: 'm', issuer: carol });
    const middle = grantOf('m', { subject: carol, issuer: dave, parentGrantId: 'r', delegationDepth: 2, issuedAt: at('08:00:00') });
    expect(fault(child(), [loop, middle])).toBe('invalid chain_cycle at r');
  });
  it('at the first broken link, naming the ancestors accepted before it', () => {
    const middle = grantOf('m', { subject: dave, issuer: carol, parentGrantId: 'top', delegationDepth: 1, issuedAt: at('08:30:00') });
    const top = grantOf('top', { subject: carol, issuedAt: at('08:00:00'), delegationDepth: 2, revokedAt: at('09:00:00') });
    expect(validate(child({ parentGrantId: 'm' }), [middle, top])).toEqual({
      status: 'invalid',
      code: 'parent_inactive',
      grantId: 'top',
      chain: ['m'],
    });
  });
});

describe('the length of a chain', () => {
  const lineage = (ancestors: number): CapabilityGrant[] =>
    Array.from({ length: ancestors }, (_, index) =>
      grantOf(`a${index}`, {
        subject: dave,
        issuer: dave,
        issuedAt: at('08:00:00'),
        delegationDepth: 20 - index,
        ...(index === 0 ? { issuer: alice } : { parentGrantId: `a${index - 1}` }),
      }),
    );
  const under = (ancestors: number): string => fault(child({ parentGrantId: `a${ancestors - 1}` }), lineage(ancestors));
  it('may be sixteen ancestors', () => expect(under(16)).toBe('valid'));
  it('may not be seventeen', () => expect(under(17)).toBe('invalid chain_too_long at a1'));
});

describe('a decision over derived grants', () => {
  const work = read(['Work']);
  const inDaves = { context: context({ authority: dave }) };
  const broken = child({ id: 'broken', delegationDepth: 7 });
  const lost = child({ id: 'lost', parentGrantId: 'nowhere' });
  const ancestors = [root()];
  it('allows through a valid chain', () => expect(answer([child()], work, { ...inDaves, ...worldOf({ ancestors }) })).toBe('allowed c'));
  it('refuses a broken chain, naming the link', () =>
    expect(decided([broken], work, { ...inDaves, ...worldOf({ ancestors }) }).decision).toEqual({
      allowed: false,
      reasonCode: 'delegation_chain_invalid',
      metadata: { delegation: { code: 'delegation_depth_exceeded', grantId: 'r' } },
    }));
  it('says that a resolver is missing', () =>
    expect(decided([lost], work, { ...inDaves, world: {} }).explanation).toMatchObject({
      reasonCode: 'delegation_chain_unverified',
      missingDependency: 'delegationResolver',
    }));
  it('allows by a root grant beside a broken one', () =>
    expect(answer([broken, grantOf('direct', { issuer: dave })], work, { ...inDaves, ...worldOf({ ancestors }) })).toBe('allowed direct'));
  it('lets what cannot be verified outrank what is broken', () =>
    expect(answer([broken, lost], work, { ...inDaves, ...worldOf({ ancestors }) })).toBe('delegation_chain_unverified'));
  it('lets either outrank the ceiling and a spent grant', () => {
    const spent = grantOf('spent', { issuer: dave, maxUses: 1 });
    const refused = grantOf('refused', { issuer: dave });
    const ceiling = (allowed: { matchedGrantId?: string | undefined }) =>
      allowed.matchedGrantId === 'refused' ? { allowed: false } : allowed;
    expect(answer([spent, refused, broken], work, { ...inDaves, ceiling, ...worldOf({ ancestors, uses: { spent: 1 } }) })).toBe(
      'delegation_chain_invalid',
    );
  });
  it('does not look up the chain of a grant that covers something else', () => {
    const { world, asked } = worldOf();
    expect(answer([lost], read(['Elsewhere']), { ...inDaves, world })).toBe('no_matching_grant');
    expect(asked).toEqual([]);
  });
});
