import { describe, expect, it } from 'vitest';
import { decideSync } from './asking.ts';
import { holdAuthority } from './authority.ts';
import { CompiledAuthority } from './compiled-authority.ts';
import { type DecideOptions, decide } from './decide.ts';
import { Defect } from './decider.ts';
import { grant } from './grant.ts';
import { type ParsedGrant, boundGrant, callDigestOf, parseGrant } from './parsed-grant.ts';
import { NOW, at, capability, context, grantOf } from './testing/base-world.ts';
import { given } from './testing/given.ts';
import { decideToolCall } from './tool-call.ts';

const A = callDigestOf({ tool: 'files.replace', arguments: { path: ['Work', 'Plan'], text: 'A' } });
const B = callDigestOf({ tool: 'files.replace', arguments: { path: ['Work', 'Plan'], text: 'B' } });
const once = grantOf('once', { capabilities: [capability(['Work'])], maxUses: 1 });
const request = { resource: { namespace: 'files', path: ['Work', 'Plan'] }, action: 'read' };

const parsed = (material = once): ParsedGrant => {
  const read = parseGrant(material);
  if (!read.ok) throw new Error('no grant');
  return read.value;
};
const held = (...grants: readonly ParsedGrant[]) => {
  const loaded = holdAuthority(context(), grants);
  if (!loaded.ok) throw new Error('no authority');
  return loaded.value;
};
const theCall = (digest: string) => (_: string, boundTo: string) => boundTo === digest;
const options: DecideOptions = { now: NOW, consume: true, mode: 'execute' };

/** The decision of the rule, and of an authority made ready for many: they are one. */
const decided = (grants: readonly ParsedGrant[], more: Partial<DecideOptions> = {}, used = 0) => {
  const world = { use: ({ max }: { readonly max: number }) => (used < max ? ('granted' as const) : ('exhausted' as const)) };
  const authority = held(...grants);
  const plain = decideSync(decide(authority, request, { ...options, ...more }), world);
  const compiled = decideSync(new CompiledAuthority(authority, { ancestorsPinned: true }).decide(request, { ...options, ...more }), world);
  expect(compiled.decision).toEqual(plain.decision);
  expect(compiled.explanation?.rejections).toEqual(plain.explanation?.rejections);
  return plain;
};

describe('a grant that is bound to one call', () => {
  const bound = boundGrant(parsed(), A);

  it('allows that call', () =>
    expect(decided([bound], { fitsCall: theCall(A) }).decision).toMatchObject({ allowed: true, matchedGrantId: 'once' }));
  it('covers no other, whatever else it grants', () => {
    const { decision, explanation } = decided([bound], { fitsCall: theCall(B) });
    expect(decision).toMatchObject({ allowed: false, reasonCode: 'no_matching_grant' });
    expect(explanation?.rejections).toEqual([{ grantId: 'once', reason: 'capability' }]);
  });
  it('allows nothing to whoever does not say which call it is', () =>
    expect(decided([bound]).decision.reasonCode).toBe('no_matching_grant'));
  it('is spent by that call, and by no other', () => {
    expect(decided([bound], { fitsCall: theCall(A) }, 1).decision.reasonCode).toBe('grant_exhausted');
    expect(decided([bound], { fitsCall: theCall(B) }, 1).decision.reasonCode).toBe('no_matching_grant');
  });
  it('lets its tool be seen', () => expect(decided([bound], { mode: 'discover', consume: false }).decision.allowed).toBe(true));
  it('leaves to the grants after it what it does not allow', () => {
    const other = parsed(grantOf('other', { capabilities: [capability(['Work'])] }));
    expect(decided([bound, other], { fitsCall: theCall(B) }).decision).toMatchObject({ allowed: true, matchedGrantId: 'other' });
  });
  it('is bound without a limit of uses, too', () => {
    const unbounded = boundGrant(parsed(grantOf('g', { capabilities: [capability(['Work'])] })), A);
    expect(decided([unbounded], { fitsCall: theCall(B) }).decision.reasonCode).toBe('no_matching_grant');
  });
  it('is asked about in a tool call', () => {
    const call = { ceiling: { ...request, resource: { namespace: 'files', path: [] } }, exact: { requirement: request }, now: NOW };
    const ask = (digest: string) =>
      decideSync(decideToolCall(held(bound), { ...call, fitsCall: theCall(digest) }), { use: () => 'granted' as const });
    expect(ask(A)).toMatchObject({ status: 'allowed', usageTaken: { grantId: 'once' } });
    expect(ask(B)).toMatchObject({ status: 'denied', code: 'no_matching_grant' });
  });
});

describe('the digest of a call', () => {
  it('is of its tool and arguments, in whatever order they were written', () => {
    const args = { text: 'A', path: ['Work', 'Plan'] };
    expect(callDigestOf({ tool: 'files.replace', arguments: args })).toBe(A);
    expect(callDigestOf({ tool: 'files.append', arguments: args })).not.toBe(A);
    expect(B).not.toBe(A);
  });
});

describe('issuing a grant that is bound', () => {
  const issue = { type: 'IssueGrant', grant: once, boundTo: A } as const;
  const issued = { type: 'GrantIssued', grant: once } as const;
  const toA = { type: 'GrantBound', grantId: 'once', callDigest: A } as const;

  it('says what binds it in the same breath', () => given(grant, []).when(issue).thenEvents(issued, toA));
  it('is of one use alone', () =>
    expect(() => grant.decide({ ...issue, grant: grantOf('once', { maxUses: 2 }) }, grant.initial)).toThrow(Defect));
  it('keeps what binds it when it is revoked', () => {
    const revoked = { type: 'GrantRevoked', grantId: 'once', revokedAt: at('11:00:00') } as const;
    expect([issued, toA, revoked].reduce(grant.evolve, grant.initial)).toMatchObject({ status: 'revoked', boundTo: A });
  });
  it('binds nothing that was not issued', () => expect(() => grant.evolve(grant.initial, toA)).toThrow(Defect));
});
