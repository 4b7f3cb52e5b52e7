import { type Address, CapabilityGrant, GrantEvent, type GrantTerms } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { Defect } from './decider.ts';
import { type GrantCommand, composeDerivedGrant, composeRootGrant, grant } from './grant.ts';
import { given } from './testing/given.ts';
import { NOW, alice, at, bob, capability, carol, dave, grantOf, instant } from './testing/base-world.ts';

const held = grantOf('g-1');
const issued: GrantEvent = { type: 'GrantIssued', grant: held };
const revoked: GrantEvent = { type: 'GrantRevoked', grantId: 'g-1', revokedAt: at('10:00:00.000') };
const issue: GrantCommand = { type: 'IssueGrant', grant: held };
const revoke = (requestedBy = alice, reason?: string): GrantCommand => ({
  type: 'RevokeGrant',
  grantId: 'g-1',
  requestedBy,
  at: NOW,
  reason,
});

describe('issuing a grant', () => {
  it('takes effect under a new id', () => given(grant, []).when(issue).thenEvents(issued));
  it('is refused under an id in use', () => given(grant, [issued]).when(issue).thenRefused({ code: 'grant_exists' }));
  it('is refused under the id of a revoked grant: it is never revived', () =>
    given(grant, [issued, revoked]).when(issue).thenRefused({ code: 'grant_exists' }));
});

describe('revoking a grant', () => {
  it('takes effect when its issuer asks', () => given(grant, [issued]).when(revoke()).thenEvents(revoked));
  it('keeps the reason given', () =>
    given(grant, [issued])
      .when(revoke(alice, 'left'))
      .thenEvents({ ...revoked, reason: 'left' }));
  it('is refused when anyone else asks, its holder too', () => {
    given(grant, [issued]).when(revoke(carol)).thenRefused({ code: 'not_the_issuer' });
    given(grant, [issued]).when(revoke(bob)).thenRefused({ code: 'not_the_issuer' });
  });
  it('is open to an operator who may stop the holder, and to nobody who merely could', () => {
    given(grant, [issued])
      .when({ ...revoke(carol), asOperator: true } as GrantCommand)
      .thenEvents(revoked);
    given(grant, [issued])
      .when({ ...revoke(carol), asOperator: false } as GrantCommand)
      .thenRefused({ code: 'not_the_issuer' });
    given(grant, [issued, revoked])
      .when({ ...revoke(carol), asOperator: true } as GrantCommand)
      .thenNothing();
  });
  it('is refused to a stranger even when it was revoked before', () =>
    given(grant, [issued, revoked]).when(revoke(carol)).thenRefused({ code: 'not_the_issuer' }));
  it('is refused when there is no such grant', () => given(grant, []).when(revoke()).thenRefused({ code: 'grant_not_found' }));
  it('changes nothing the second time', () => given(grant, [issued, revoked]).when(revoke()).thenNothing());
  it('writes its instant on the grant', () =>
    expect([issued, revoked].reduce((state, event) => grant.evolve(state, event), grant.initial)).toEqual({
      status: 'revoked',
      grant: { ...held, revokedAt: at('10:00:00.000') },
    }));
  it('makes events that meet their contract', () => {
    for (const event of [issued, { ...revoked, reason: 'left' }]) expect(GrantEvent.parse(event)).toEqual(event);
  });
  it('cannot have happened before it was issued', () => expect(() => grant.evolve(grant.initial, revoked)).toThrow(Defect));
});

const terms = (changes: Partial<GrantTerms> = {}): GrantTerms => ({
  id: 'g-2',
  subject: bob,
  capabilities: [capability(['Work'])],
  ...changes,
});
const root = (changes?: Partial<GrantTerms>) => composeRootGrant(terms(changes), { issuer: alice, namespaceId: 'w1', at: NOW });

describe('composing a root grant', () => {
  it("is over the issuer's own resources, and says so in every capability", () => {
    const composed = root({
      capabilities: [capability(['Work']), capability(['Play'], { owner: alice })],
      constraints: { maxUses: 1 },
      metadata: { note: 1 },
    });
    const expected = {
      id: 'g-2',
      namespaceId: 'w1',
      subject: bob,
      issuer: alice,
      capabilities: [capability(['Work'], { owner: alice }), capability(['Play'], { owner: alice })],
      constraints: { maxUses: 1 },
      issuedAt: at('10:00:00.000'),
      metadata: { note: 1 },
    };
    expect(composed).toEqual({ ok: true, value: expected });
    expect(CapabilityGrant.parse(expected)).toEqual(expected);
  });
  it('may name its issuer, as itself', () =>
    expect(root({ issuer: alice })).toMatchObject({ ok: true, value: { issuer: alice, constraints: {} } }));
  it('is refused under an id as only answers of questions have', () =>
    expect(root({ id: 'escalation-1' })).toEqual({ ok: false, error: { code: 'grant_id_reserved' } }));
  it("is refused in another issuer's name", () =>
    expect(root({ issuer: carol })).toEqual({ ok: false, error: { code: 'identity_mismatch' } }));
  it("is refused over another owner's resource, in whichever capability", () =>
    expect(root({ capabilities: [capability(['Work']), capability(['Work'], { owner: carol })] })).toEqual({
      ok: false,
      error: { code: 'identity_mismatch' },
    }));
});

describe('composing a derived grant', () => {
  const parent = grantOf('p', { subject: dave, delegationDepth: 1, issuedAt: at('09:00:00') });
  const derive = (from = parent, changes: Partial<GrantTerms> = {}, requestedBy: Address = dave, when = NOW) => {
    const composed = composeDerivedGrant(from, terms(changes), { requestedBy, at: when });
    return composed.ok ? composed.value : composed.error.code;
  };
  it('is issued by its holder', () =>
    expect(derive()).toMatchObject({ issuer: dave, subject: bob, parentGrantId: 'p', issuedAt: at('10:00:00.000') }));
  it("is refused to the parent's issuer, who does not hold it", () => expect(derive(parent, {}, alice)).toBe('not_the_holder'));
  it('is refused to anyone else', () => expect(derive(parent, {}, bob)).toBe('not_the_holder'));
  it('is refused under an id as only answers of questions have', () =>
    expect(derive(parent, { id: 'escalation-1' })).toBe('grant_id_reserved'));
  it("is refused in another issuer's name", () => expect(derive(parent, { issuer: alice })).toBe('identity_mismatch'));
  it('is refused when the parent was revoked', () => expect(derive({ ...parent, revokedAt: at('09:30:00') })).toBe('parent_inactive'));
  it('is refused when the parent was revoked by a clock ahead of ours', () =>
    expect(derive({ ...parent, revokedAt: at('10:00:01') })).toBe('parent_inactive'));
  it('is refused by the rules of deriving', () =>
    expect(derive(parent, { capabilities: [capability([])] })).toBe('capability_not_within_parent'));
  describe('over resources whose owner it leaves out', () => {
    const owned = (...owners: readonly (Address | undefined)[]) => ({
      ...parent,
      capabilities: owners.map((owner) => capability(['Work'], owner === undefined ? {} : { owner })),
    });
    it("is over the parent's one owner, and says so", () =>
      expect(derive(owned(alice, alice))).toMatchObject({ capabilities: [capability(['Work'], { owner: alice })] }));
    it("leaves an owner that is named, and is refused when it is not the parent's", () => {
      expect(derive(owned(alice), { capabilities: [capability(['Work'], { owner: alice })] })).toMatchObject({ subject: bob });
      expect(derive(owned(alice), { capabilities: [capability(['Work'], { owner: carol })] })).toBe('capability_not_within_parent');
      expect(derive(owned(alice), { capabilities: [capability(['Work']), capability(['Work'], { owner: carol })] })).toBe(
        'capability_not_within_parent',
      );
    });
    it('is refused when the parent has two owners: neither is meant more than the other', () =>
      expect(derive(owned(alice, carol))).toBe('capability_not_within_parent'));
    it('stays without one when a capability of the parent has none', () =>
      expect(derive(owned(undefined, alice))).toMatchObject({ capabilities: [capability(['Work'])] }));
    it('is no wider for it', () => expect(derive(owned(alice), { capabilities: [capability([])] })).toBe('capability_not_within_parent'));
  });
  it('is not dated before a parent that a clock ahead of ours dated', () =>
    expect(derive(parent, {}, dave, instant('08:59:59.750'))).toMatchObject({ issuedAt: at('09:00:00.000') }));
});
