import { CapabilityRequest, hashOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { capabilityRequestOf, describeRequiredAuthority, mintCapabilityRequest, requiredAuthorityOf } from './required-authority.ts';
import { alice, at, bob, capability, carol, context, read } from './testing/base-world.ts';

const ask = { capabilities: [capability(['Work'])], purpose: 'p1' };
const id = (inContext = context(), payload: unknown = ask): string | undefined => {
  const minted = capabilityRequestOf(inContext, payload);
  return minted.ok ? minted.value.id : undefined;
};

describe('a minted request for authority', () => {
  it('states who asks, of whom and when from the context', () => {
    const minted = capabilityRequestOf(context(), { ...ask, metadata: { note: 'urgent' } });
    const identity = { namespaceId: 'w1', requester: bob, owner: alice, ...ask };
    const expected = { id: `capreq-${hashOf(identity)}`, ...identity, requestedAt: context().now, metadata: { note: 'urgent' } };
    expect(minted).toEqual({ ok: true, value: expected });
    expect(CapabilityRequest.parse(expected)).toEqual(expected);
  });
  it('is the same whenever it is asked and whatever is noted beside', () =>
    expect(id(context({ now: at('23:00:00') }), { ...ask, metadata: { note: 'later' } })).toBe(id()));
  it('is another one for another purpose', () => expect(id(context(), { ...ask, purpose: 'p2' })).not.toBe(id()));
  it('is another one with constraints', () => expect(id(context(), { ...ask, constraints: { maxUses: 1 } })).not.toBe(id()));
  it('is another one in another namespace, of another owner or for another actor', () =>
    expect(new Set([id(), id(context({ namespaceId: 'w2' })), id(context({ owner: carol })), id(context({ actor: carol }))]).size).toBe(4));
  it('throws away what a whole request says of itself', () => {
    const forged = { id: 'capreq-mine', namespaceId: 'w9', requester: carol, owner: carol, requestedAt: at('01:00:00'), ...ask };
    expect(capabilityRequestOf(context(), forged)).toEqual(capabilityRequestOf(context(), ask));
  });
  it.each([
    ['no capability', { ...ask, capabilities: [] }],
    ['an unknown field', { ...ask, urgency: 1 }],
    ['a climbing path', { ...ask, capabilities: [capability(['..'])] }],
    ['a member set to nothing', { ...ask, metadata: undefined }],
    ['no ask at all', null],
  ])('does not exist for %s', (_, payload) => expect(capabilityRequestOf(context(), payload)).toEqual({ ok: false, error: 'invalid_ask' }));
});

describe('the authority a refused request needed', () => {
  it('is exactly it, for the purpose of the context', () =>
    expect(requiredAuthorityOf(context(), read(['Work', 'x'], { action: 'append' }))).toMatchObject({
      purpose: 'p1',
      capabilities: [{ resource: { namespace: 'files', path: ['Work', 'x'] }, actions: ['append'], scope: 'exact' }],
    }));
  it('has another id when the owner was stated than when it was left out', () =>
    expect(requiredAuthorityOf(context(), read(['Work'], { owner: alice }))?.id).not.toBe(
      requiredAuthorityOf(context(), read(['Work']))?.id,
    ));
  it('is not described where it cannot be', () => expect(requiredAuthorityOf(context({ purpose: '' }), read(['Work']))).toBeUndefined());
});

describe('the two as a host calls them', () => {
  it('answer with the same request, or with nothing', async () => {
    expect((await mintCapabilityRequest(context(), ask))?.id).toBe(id());
    expect(await mintCapabilityRequest(context(), { ...ask, capabilities: [] })).toBeUndefined();
    expect(await describeRequiredAuthority(context(), read(['Work']))).toEqual(requiredAuthorityOf(context(), read(['Work'])));
  });
});
