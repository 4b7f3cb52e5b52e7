import { ReachResult as ReachContract, type ReachResult, type ResourceReach } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, decideSync } from './asking.ts';
import { computeReach, reachThroughTools } from './reach.ts';
import { NOW, alice, at, authorityOf, capability, carol, context, grantOf, instant, read, worldOf } from './testing/base-world.ts';

const reach = (
  grants: Parameters<typeof authorityOf>[0],
  { now = NOW, world = worldOf().world as World, inContext = context() } = {},
): ReachResult => decideSync(computeReach(authorityOf(grants, inContext), { now }), world);
const entry = (path: string[], actions = ['read'], namespace = 'files') => ({ namespace, path, actions, scope: 'descendants' });

describe('reach', () => {
  it('says where, and nothing of whom, until when or how often', () => {
    const bounded = grantOf('g', {
      maxUses: 3,
      expiresAt: at('11:00:00'),
      capabilities: [capability(['Work'], { actions: ['read', 'list', 'read'], owner: alice })],
    });
    expect(reach([bounded])).toEqual({ status: 'computed', reach: [entry(['Work'], ['list', 'read'])] });
    expect(ReachContract.parse(reach([bounded]))).toEqual(reach([bounded]));
  });
  it('lists each entry once, in canonical order', () =>
    expect(
      reach([grantOf('b', { capabilities: [capability(['b']), capability(['a'])] }), grantOf('a', { capabilities: [capability(['a'])] })]),
    ).toEqual({
      status: 'computed',
      reach: [entry(['a']), entry(['b'])],
    }));
  it('spends nothing', () => {
    const { world, asked } = worldOf();
    reach([grantOf('g', { maxUses: 1 })], { world });
    expect(asked).toEqual(['peek g']);
  });

  it.each([
    ['is expired', grantOf('g', { expiresAt: at('10:00:00') })],
    ['has not begun', grantOf('g', { notBefore: at('10:00:01') })],
    ['is revoked', grantOf('g', { revokedAt: at('10:00:00') })],
    ['is for another purpose', grantOf('g', { purposes: ['p2'] })],
    ['is over the resources of another owner', grantOf('g', { capabilities: [capability(['Work'], { owner: carol })] })],
    ['has an ancestor that cannot be found', grantOf('g', { parentGrantId: 'nowhere' })],
  ])('leaves out a grant that %s', (_, grant) => expect(reach([grant])).toEqual({ status: 'computed', reach: [] }));
  it('leaves out a spent grant', () =>
    expect(reach([grantOf('g', { maxUses: 1 })], worldOf({ uses: { g: 1 } }))).toEqual({ status: 'computed', reach: [] }));
  it('leaves out a grant that expires inside the turn', () =>
    expect(reach([grantOf('g', { expiresAt: at('10:05:00') })], { now: instant('10:05:00') })).toEqual({ status: 'computed', reach: [] }));
  it('is empty for a context that cannot be used', () =>
    expect(reach([grantOf()], { inContext: context({ purpose: '' }) })).toEqual({ status: 'computed', reach: [] }));

  it.each<[string, World]>([
    ['is down', { use: () => 'unavailable' }],
    ['is missing', {}],
  ])('is unavailable as a whole when a budget counts and its store %s', (_, world) =>
    expect(reach([grantOf(), grantOf('b', { maxUses: 1 })], { world })).toEqual({
      status: 'unavailable',
      reasonCode: 'usage_store_unavailable',
    }),
  );
});

describe('reach through tools', () => {
  const all: readonly ResourceReach[] = [{ namespace: 'files', path: [], actions: ['read', 'x'], scope: 'exact' }];
  const tool = (namespace: string) => ({ requiredCapability: read([], { namespace }) });
  it('keeps the resource namespaces that some tool operates on, actions untouched', () =>
    expect(reachThroughTools(all, [tool('files')])).toEqual(all));
  it('drops the others', () => expect(reachThroughTools(all, [tool('repo')])).toEqual([]));
  it('is nothing without tools', () => expect(reachThroughTools(all, [])).toEqual([]));
});
