import { AuthorizationDecision } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { decidedWithoutAuthority } from './decide.ts';
import { publicDecision } from './public-decision.ts';
import { decided, grantOf, read } from './testing/base-world.ts';

const g = grantOf();
const work = read(['Work']);

describe('what of a decision leaves the services', () => {
  it('is the grant that allowed', () =>
    expect(publicDecision(decided([g], work).decision)).toEqual({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'g' }));
  it('is what would have satisfied it', () => expect(publicDecision(decided([], work).decision)).toEqual(decided([], work).decision));
  it('is the rule of delegation that broke, but not the grant it broke at', () => {
    const shown = publicDecision(decided([grantOf('c', { parentGrantId: 'secret' })], work).decision);
    expect(shown).toEqual({
      allowed: false,
      reasonCode: 'delegation_chain_unverified',
      metadata: { delegation: { code: 'parent_not_found' } },
    });
    expect(AuthorizationDecision.parse(shown)).toEqual(shown);
  });
  it('is neither the grant that policy overrode nor what policy said', () => {
    const ceiling = () => ({ allowed: false, metadata: { rule: 'freeze', delegation: { code: 'mine' } } });
    expect(publicDecision(decided([g], work, { ceiling }).decision)).toEqual({ allowed: false, reasonCode: 'host_policy_denied' });
  });
  it('is not why authority was unavailable', () =>
    expect(publicDecision(decidedWithoutAuthority({ code: 'grant_limit_exceeded' }).decision)).toEqual({
      allowed: false,
      reasonCode: 'authority_unavailable',
    }));
});
