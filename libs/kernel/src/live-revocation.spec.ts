import { describe, expect, it } from 'vitest';
import type { RevocationAsk, World } from './asking.ts';
import { at, carol, dave, decided, grantOf, read, worldOf } from './testing/base-world.ts';

const work = read(['Work']);
/** Carol holds `top`, passed part of it on to Dave, and Dave on to Bob. */
const top = grantOf('top', { subject: carol, issuedAt: at('08:00:00'), delegationDepth: 2 });
const middle = grantOf('middle', { subject: dave, issuer: carol, parentGrantId: 'top', issuedAt: at('08:30:00'), delegationDepth: 1 });
const leaf = grantOf('leaf', { issuer: dave, parentGrantId: 'middle' });

const revoking = (...revokedGrantIds: readonly string[]) => {
  const asked: RevocationAsk[] = [];
  const revocation: World['revocation'] = (ask) => {
    asked.push(ask);
    return { revision: 'log@9', revokedGrantIds };
  };
  return { asked, world: { ...worldOf({ ancestors: [middle, top] }).world, revocation } };
};
const leafUnder = (world: World) =>
  decided([leaf], work, {
    world,
    checks: { liveRevocation: true },
    context: {
      namespaceId: 'w1',
      actor: leaf.subject,
      authority: dave,
      owner: top.issuer,
      purpose: 'p1',
      traceId: 't',
      enabledToolNamespaces: [],
      now: at('10:00:00'),
    },
  });

describe('live revocation', () => {
  it('takes nothing away where nothing of the chain is revoked, and is asked about all of it at once', () => {
    const { asked, world } = revoking('somebody-else');
    expect(leafUnder(world).decision).toMatchObject({ allowed: true, matchedGrantId: 'leaf' });
    expect(asked).toEqual([{ ask: 'revocation', namespaceId: 'w1', grantIds: ['leaf', 'middle', 'top'] }]);
  });
  it.each(['middle', 'top'])('of the ancestor %s breaks the chain there, however far above', (id) =>
    expect(leafUnder(revoking(id).world).decision).toMatchObject({
      reasonCode: 'delegation_chain_invalid',
      metadata: { delegation: { code: 'parent_inactive', grantId: id } },
    }),
  );
  it('of the grant itself is like being outside its window', () => {
    const { decision, explanation } = leafUnder(revoking('leaf').world);
    expect(decision.reasonCode).toBe('no_matching_grant');
    expect(explanation?.rejections).toEqual([{ grantId: 'leaf', reason: 'window' }]);
  });
  it('that cannot be read decides nothing', () =>
    expect(leafUnder({ ...revoking().world, revocation: () => 'unavailable' }).decision.reasonCode).toBe('authority_unavailable'));
});
