import { describe, expect, it } from 'vitest';
import {
  CapabilityAuthorizer,
  type CapabilityAuthorizerOptions,
  type GrantUsageStore,
  INFRASTRUCTURE_DENIAL_REASONS,
  isInfrastructureDenial,
} from './authorizer.ts';
import {
  type GrantSource,
  MAX_RESOLVED_GRANTS,
  MID_TURN_AUTHORITY_REFRESH,
  type ResolvedAuthority,
  TrustedAuthorityResolver,
  turnAuthorityKey,
} from './authority-resolver.ts';
import type { AuthorizationExplanation } from './decide.ts';
import { DEFAULT_MAX_DELEGATION_CHAIN_LENGTH, validateDelegationChain } from './delegation-chain.ts';
import { InMemoryGrantStore, InMemoryGrantUsageStore } from './memory-ports.ts';
import { NOW, alice, at, bob, capability, carol, context, dave, grantOf, read } from './testing/base-world.ts';

const g = grantOf();
const sourceOf = (...grants: ReturnType<typeof grantOf>[]): GrantSource => ({ load: async () => grants });
const resolved = async (...grants: ReturnType<typeof grantOf>[]): Promise<ResolvedAuthority> => {
  const resolution = await new TrustedAuthorityResolver(sourceOf(...grants)).resolve(context());
  if (resolution.status !== 'resolved') throw new Error(resolution.code);
  return resolution.authority;
};
const work = read(['Work']);
const authorizerOf = (options: CapabilityAuthorizerOptions = {}) => new CapabilityAuthorizer(options);

describe('resolving authority', () => {
  it('names what is held, in the order of ids, and freezes it', async () => {
    const authority = await resolved(grantOf('b'), grantOf('a'));
    expect(authority.snapshot).toMatchObject({ grantIds: ['a', 'b'], grantCount: 2, loadedAt: at('10:00:00.000') });
    expect(authority.grants.map(({ id }) => id)).toEqual(['b', 'a']);
    expect(() => ((authority.grants[0] as { id: string }).id = 'c')).toThrow(TypeError);
    expect(Object.isFrozen(authority.grants[0]?.capabilities[0]?.actions)).toBe(true);
  });
  it.each<[string, GrantSource, object]>([
    ['a source that throws', { load: async () => Promise.reject(new Error('down')) }, { code: 'grant_source_failed' }],
    ['a source that answers with no list', { load: async () => 'grants' as never }, { code: 'invalid_grant_material' }],
    ['a grant that is none', sourceOf({ ...g, colour: 'red' } as never), { code: 'invalid_grant_material' }],
    ['one id twice', sourceOf(g, g), { code: 'invalid_grant_material' }],
    [
      'one grant too many',
      sourceOf(...Array.from({ length: MAX_RESOLVED_GRANTS + 1 }, (_, index) => grantOf(`g-${index}`))),
      { code: 'grant_limit_exceeded' },
    ],
    [
      "somebody else's grant",
      sourceOf(g, grantOf('d', { subject: dave })),
      { code: 'grant_scope_mismatch', detail: { grantId: 'd', reason: 'subject' } },
    ],
  ])('is all or nothing with %s', async (_, source, failure) =>
    expect(await new TrustedAuthorityResolver(source).resolve(context())).toEqual({ status: 'unavailable', ...failure }),
  );
  it('re-throws a cancel instead of calling it an outage', async () => {
    const source = { load: async () => Promise.reject(new Error('down')) };
    await expect(new TrustedAuthorityResolver(source).resolve(context(), AbortSignal.abort(new Error('stopped')))).rejects.toThrow(
      'stopped',
    );
  });
  it('gives its source a copy: editing it changes nothing', async () => {
    const mine = context();
    const source: GrantSource = {
      load: async (given) => {
        expect(given).toEqual(mine);
        expect(given).not.toBe(mine);
        return [];
      },
    };
    await new TrustedAuthorityResolver(source).resolve(mine);
  });
  it('belongs to a turn by what a decision reads and does not move', () => {
    expect(turnAuthorityKey(context({ now: at('11:00:00'), enabledToolNamespaces: ['files'] }))).toBe(turnAuthorityKey(context()));
    for (const other of [
      { namespaceId: 'w2' },
      { actor: dave },
      { authority: carol },
      { owner: carol },
      { purpose: 'p2' },
      { traceId: 't2' },
    ])
      expect(turnAuthorityKey(context(other))).not.toBe(turnAuthorityKey(context()));
  });
  it('is not refreshed inside a turn', () => expect(MID_TURN_AUTHORITY_REFRESH).toBe(false));
});

describe('an authorizer', () => {
  it('says whether a ceiling is installed', () => {
    expect(authorizerOf().hasHostCeiling).toBe(false);
    expect(authorizerOf({ hostCeiling: { narrow: (decision) => decision } }).hasHostCeiling).toBe(true);
  });
  it('allows what one grant covers, and names it', async () =>
    expect(await authorizerOf().authorize(await resolved(g), work)).toEqual({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'g' }));
  it('explains a denial to the host once, and never an allow or a discovery', async () => {
    const heard: AuthorizationExplanation[] = [];
    const onExplain = (explanation: AuthorizationExplanation): void => {
      heard.push(explanation);
      throw new Error('a diagnostic cannot change a decision');
    };
    const authority = await resolved(g);
    await authorizerOf().authorize(authority, work, { onExplain });
    await authorizerOf().canDiscover(authority, read(['Elsewhere']));
    expect((await authorizerOf().authorize(authority, read(['Elsewhere']), { onExplain })).reasonCode).toBe('no_matching_grant');
    expect(heard).toEqual([{ reasonCode: 'no_matching_grant', grantsResolved: 1, rejections: [{ grantId: 'g', reason: 'capability' }] }]);
    expect(Object.isFrozen(heard[0]?.rejections)).toBe(true);
  });
  it('judges expiry at the instant it is given, and never falls back from one that cannot be read', async () => {
    const authority = await resolved(grantOf('g', { expiresAt: at('10:05:00') }));
    expect((await authorizerOf().authorize(authority, work, { now: at('10:04:59.999') })).allowed).toBe(true);
    expect((await authorizerOf().authorize(authority, work, { now: at('10:05:00') })).reasonCode).toBe('no_matching_grant');
    expect((await authorizerOf().authorize(authority, work, { now: 'soon' })).reasonCode).toBe('invalid_context');
  });
  it('spends a use only when told to', async () => {
    const usageStore = new InMemoryGrantUsageStore();
    const authority = await resolved(grantOf('g', { maxUses: 1 }));
    const authorizer = authorizerOf({ usageStore });
    for (let time = 0; time < 3; time += 1) expect((await authorizer.authorize(authority, work)).allowed).toBe(true);
    expect((await authorizer.authorize(authority, work, { consume: true })).allowed).toBe(true);
    expect((await authorizer.authorize(authority, work, { consume: true })).reasonCode).toBe('grant_exhausted');
    expect(await authorizer.reach(authority)).toEqual({ status: 'computed', reach: [] });
  });
  it.each<[string, Partial<GrantUsageStore>]>([
    ['throws', { getUsage: async () => Promise.reject(new Error('down')) }],
    ['answers with no count', { getUsage: async () => NaN }],
    ['answers below nothing', { getUsage: async () => -1 }],
  ])('cannot find out with a counter that %s', async (_, broken) => {
    const authorizer = authorizerOf({ usageStore: { getUsage: async () => 0, tryConsume: async () => true, ...broken } });
    expect((await authorizer.authorize(await resolved(grantOf('g', { maxUses: 1 })), work)).reasonCode).toBe('usage_store_unavailable');
  });
  it.each<[string, () => Promise<boolean>]>([
    ['throws', async () => Promise.reject(new Error('no'))],
    ['answers anything but true', async () => 1 as unknown as boolean],
  ])('rejects a grant whose verifier %s, and that is no outage', async (_, verify) => {
    const authorizer = authorizerOf({ grantVerifier: { verify } });
    expect((await authorizer.authorize(await resolved(g), work)).reasonCode).toBe('no_matching_grant');
    expect(await authorizer.reach(await resolved(g))).toEqual({ status: 'computed', reach: [] });
  });
  it.each<[string, unknown]>([
    ['throws', new Error('down')],
    ['answers with no grant', 'grant'],
    ['answers with another grant', grantOf('other', { subject: alice })],
  ])('cannot verify a chain whose resolver %s', async (_, material) => {
    const resolve = async () => (material instanceof Error ? Promise.reject(material) : (material as never));
    const authorizer = authorizerOf({ delegationResolver: { resolve } });
    const decision = await authorizer.authorize(await resolved(grantOf('g', { parentGrantId: 'p' })), work);
    expect(decision).toMatchObject({ reasonCode: 'delegation_chain_unverified', metadata: { delegation: { code: 'resolver_failed' } } });
  });
  it('walks no chain longer than it is told to', async () => {
    const store = new InMemoryGrantStore();
    store.issue(grantOf('p', { subject: alice, issuer: alice, delegationDepth: 1 }));
    const child = grantOf('g', { parentGrantId: 'p' });
    expect((await authorizerOf({ delegationResolver: store }).authorize(await resolved(child), work)).allowed).toBe(true);
    const short = authorizerOf({ delegationResolver: store, maxDelegationChainLength: 0 });
    expect((await short.authorize(await resolved(child), work)).metadata).toEqual({ delegation: { code: 'chain_too_long', grantId: 'g' } });
  });
  it('tells outages from rules', () => {
    for (const code of INFRASTRUCTURE_DENIAL_REASONS) expect(isInfrastructureDenial(code)).toBe(true);
    for (const code of ['no_matching_grant', 'grant_exhausted', 'host_policy_denied', 'allowed'])
      expect(isInfrastructureDenial(code)).toBe(false);
  });
});

describe('an authority that a host puts together by hand', () => {
  const snapshot = { hash: '0'.repeat(64), grantIds: ['g'], grantCount: 1, loadedAt: at('10:00:00.000') };
  it('is decided on like any other', async () =>
    expect((await authorizerOf().authorize({ context: context(), grants: [g], snapshot }, work)).allowed).toBe(true));
  it("does not let somebody else's grant through", async () => {
    const heard: AuthorizationExplanation[] = [];
    const grants = [grantOf('i', { issuer: carol }), grantOf('s', { subject: dave }), grantOf('n', { namespaceId: 'w2' })];
    const authority = { context: context(), grants, snapshot };
    expect((await authorizerOf().authorize(authority, work, { onExplain: (why) => heard.push(why) })).allowed).toBe(false);
    expect(heard[0]?.rejections.map(({ reason }) => reason)).toEqual(['issuer', 'subject', 'namespace']);
  });
  it('of which some grant is none is no authority', async () => {
    const authority = { context: context(), grants: [{ ...g, colour: 'red' } as never], snapshot };
    expect(await authorizerOf().authorize(authority, work)).toEqual({ allowed: false, reasonCode: 'authority_unavailable' });
    expect(await authorizerOf().reach(authority)).toEqual({ status: 'unavailable', reasonCode: 'authority_unavailable' });
  });
  it('in a context that is none is an invalid context', async () =>
    expect((await authorizerOf().authorize({ context: context({ purpose: '' }), grants: [g], snapshot }, work)).reasonCode).toBe(
      'invalid_context',
    ));
});

describe('validating a chain by itself', () => {
  const parent = grantOf('p', { subject: alice, issuer: carol, delegationDepth: 1, expiresAt: at('10:05:00') });
  const child = grantOf('c', { parentGrantId: 'p', expiresAt: at('10:05:00') });
  const resolver = { resolve: async () => parent };
  it('says which ancestors it found', async () =>
    expect(await validateDelegationChain(child, context(), NOW, { resolver })).toEqual({ status: 'valid', chain: ['p'] }));
  it('judges expiry now and everything else at admission', async () =>
    expect(await validateDelegationChain(child, context(), NOW + 300_000, { resolver, admittedAt: NOW })).toMatchObject({
      code: 'parent_inactive',
    }));
  it('fails closed without a resolver', async () =>
    expect(await validateDelegationChain(child, context(), NOW)).toMatchObject({ status: 'unverified', code: 'resolver_unavailable' }));
  it('refuses what is no grant', async () =>
    expect(validateDelegationChain({ ...child, id: '' }, context(), NOW)).rejects.toThrow('not a valid grant'));
  it('stops at sixteen ancestors unless told otherwise', () => expect(DEFAULT_MAX_DELEGATION_CHAIN_LENGTH).toBe(16));
});

describe('the stores of one process', () => {
  it('issue an id once, and keep what was revoked', async () => {
    const store = new InMemoryGrantStore();
    store.issue(g);
    expect(() => store.issue(g)).toThrow('never used twice');
    expect(() => store.issue({ ...g, id: '' })).toThrow('not a valid grant');
    expect(() => store.revoke('w1', 'nowhere', at('10:00:00'))).toThrow('no such grant');
    store.revoke('w1', 'g', at('10:00:00'));
    store.revoke('w1', 'g', at('11:00:00'));
    expect(await store.resolve('w1', 'g')).toMatchObject({ revokedAt: at('10:00:00') });
    expect(await store.resolve('w2', 'g')).toBeUndefined();
  });
  it('load what an actor holds from an authority in a namespace, and nothing else', async () => {
    const store = new InMemoryGrantStore();
    for (const grant of [g, grantOf('d', { subject: dave }), grantOf('i', { issuer: carol }), grantOf('n', { namespaceId: 'w2' })])
      store.issue(grant);
    expect((await store.load(context())).map(({ id }) => id)).toEqual(['g']);
  });
  it('hand out exactly as many uses as there are, however many ask at once', async () => {
    const usage = new InMemoryGrantUsageStore();
    const taken = await Promise.all(Array.from({ length: 50 }, () => usage.tryConsume('w1', 'g', 7)));
    expect(taken.filter(Boolean)).toHaveLength(7);
    expect([await usage.getUsage('w1', 'g'), await usage.getUsage('w2', 'g')]).toEqual([7, 0]);
  });
  it('count by namespace and id, which never run into each other', async () => {
    const usage = new InMemoryGrantUsageStore();
    await usage.tryConsume('a', 'b","c', 9);
    expect(await usage.getUsage('a","b', 'c')).toBe(0);
  });
  it('are enough for a capability of one agent', async () =>
    expect(
      await authorizerOf().canDiscover(
        await resolved(grantOf('g', { capabilities: [capability(['A'], { scope: 'exact' })], subject: bob })),
        read([]),
      ),
    ).toMatchObject({
      allowed: true,
    }));
});
