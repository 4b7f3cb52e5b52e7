import { type AuthorizationDecision, AuthorizationDecision as DecisionContract } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { decideSync, decideWith } from './asking.ts';
import { decide, decidedWithoutAuthority, unfitness } from './decide.ts';
import { parseRequirement } from './parsed-requirement.ts';
import {
  CONSUME,
  DISCOVER,
  EXECUTE,
  NOW,
  alice,
  answer,
  at,
  authorityOf,
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
  type Narrow,
} from './testing/base-world.ts';

const g = grantOf();
const work = read(['Work']);

describe('a decision', () => {
  it('allows what one active grant covers, and names it', () =>
    expect(decided([g], work).decision).toEqual({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'g' }));
  it('denies by default', () => expect(answer([], work)).toBe('no_matching_grant'));
  it('never takes the action of one grant and the path of another', () => {
    const a = grantOf('a', { capabilities: [capability(['A'])] });
    const b = grantOf('b', { capabilities: [capability(['B'], { actions: ['search'] })] });
    expect(answer([a, b], read(['A'], { action: 'search' }))).toBe('no_matching_grant');
  });
  it('never takes them from two capabilities of one grant', () => {
    const both = grantOf('g', { capabilities: [capability(['A']), capability(['B'], { actions: ['search'] })] });
    expect(answer([both], read(['A'], { action: 'search' }))).toBe('no_matching_grant');
  });
  it('needs the purpose exactly', () => {
    expect(answer([grantOf('g', { purposes: ['p1-and-more', 'P1'] })], work)).toBe('no_matching_grant');
    expect(answer([grantOf('g', { purposes: ['p2', 'p1'] })], work)).toBe('allowed g');
  });
  it('follows the owner of the context where a capability names none', () =>
    expect(answer([g], work, { context: context({ owner: carol }) })).toBe('allowed g'));
  it('asks nothing of the world for an unbounded root grant', () => {
    const { world, asked } = worldOf();
    answer([g], work, { world });
    expect(asked).toEqual([]);
  });
  it('has the same answer whether the world answers at once or later', async () => {
    const grants = [grantOf('spent', { maxUses: 1 }), grantOf('g', { maxUses: 2 })];
    const uses = { spent: 1 };
    const later = await decideWith(decide(authorityOf(grants), work, CONSUME), {
      use: (ask) => Promise.resolve(worldOf({ uses }).world.use(ask)),
    });
    expect(later).toEqual(decideSync(decide(authorityOf(grants), work, CONSUME), worldOf({ uses }).world));
  });
  it('meets its contract on every code', () => {
    const unbound = [
      decided([g], work),
      decided([], work),
      decided([g], read([''])),
      decidedWithoutAuthority({ code: 'grant_source_failed' }),
    ];
    for (const { decision } of unbound) expect(DecisionContract.parse(decision)).toEqual(decision);
  });
});

describe('a context that cannot be used decides nothing', () => {
  it.each<[string, Partial<ReturnType<typeof context>>]>([
    ['its instant cannot be read', { now: 'yesterday' }],
    ['it has no purpose', { purpose: ' ' }],
    ['it has no trace', { traceId: '' }],
    ['its tool namespaces repeat', { enabledToolNamespaces: ['a', 'a'] }],
  ])('when %s', (_, changes) => expect(answer([], work, { context: context(changes) })).toBe('invalid_context'));
  it('when the instant of the operation cannot be read, although the one of the turn can', () =>
    expect(answer([g], work, { now: NaN })).toBe('invalid_context'));
  it('before its request is looked at', () => expect(answer([g], read([], { action: '' }), { now: NaN })).toBe('invalid_context'));
});

describe('a request that cannot be read is refused before any grant', () => {
  const anything = grantOf('g', { capabilities: [capability([], { actions: ['*'] })] });
  it.each([
    ['has no action', read(['Work'], { action: '' })],
    ['has no namespace', read(['Work'], { namespace: ' ' })],
    ['climbs', read(['Work', '..', 'x'])],
    ['has a segment with a separator', read(['Work/x'])],
    ['has a segment with outer space', read(['Work '])],
    ['has 65 segments', read(Array.from({ length: 65 }, () => 'd'))],
    ['names another owner', read(['Work'], { owner: carol })],
  ])('when it %s', (_, request) => {
    const { decision, explanation } = decided([anything], request);
    expect(decision).toEqual({ allowed: false, reasonCode: 'invalid_request' });
    expect(explanation).toMatchObject({ grantsResolved: 1, rejections: [] });
  });
  it('and one that was read before is recognised, being frozen', () => {
    const first = parseRequirement(read(['Work'], { action: ' read ' }));
    expect(first).toMatchObject({ action: 'read' });
    expect(parseRequirement(first as typeof work)).toBe(first);
    expect(() => (first as typeof work).resource.path.push('x')).toThrow(TypeError);
  });
});

describe('why each grant was rejected', () => {
  it('is the first test it failed, in the order they were walked', () => {
    const lost = grantOf('lost', { parentGrantId: 'nowhere' });
    const grants = [
      grantOf('late', { expiresAt: at('09:30:00'), purposes: ['p2'] }),
      grantOf('other', { purposes: ['p2'], capabilities: [capability(['X'])] }),
      grantOf('refused'),
      grantOf('beside', { capabilities: [capability(['X'])], parentGrantId: 'nowhere' }),
      lost,
      grantOf('spent', { maxUses: 1 }),
    ];
    const { world } = worldOf({ uses: { spent: 1 } });
    expect(decided(grants, work, { world, verify: ({ id }) => id !== 'refused' }).explanation).toEqual({
      reasonCode: 'delegation_chain_unverified',
      grantsResolved: 6,
      rejections: [
        { grantId: 'late', reason: 'window' },
        { grantId: 'other', reason: 'purpose' },
        { grantId: 'refused', reason: 'verifier' },
        { grantId: 'beside', reason: 'capability' },
        { grantId: 'lost', reason: 'delegation' },
        { grantId: 'spent', reason: 'exhausted' },
      ],
    });
  });
  it('is the verifier when nobody answers for it, which is no outage', () => {
    const { decision, explanation } = decided([g], work, { checks: { verifier: true } });
    expect([decision.reasonCode, explanation?.rejections]).toEqual(['no_matching_grant', [{ grantId: 'g', reason: 'verifier' }]]);
  });
  it('is known to tell an empty store from a full one', () => expect(decided([], work).explanation?.grantsResolved).toBe(0));
});

describe('a grant of somebody else', () => {
  // A load that met one would have refused all of them; the walk does not lean on that.
  const frame = { admittedAt: NOW, now: NOW };
  it.each([
    ['issuer', context({ authority: carol })],
    ['subject', context({ actor: dave })],
    ['namespace', context({ namespaceId: 'w2' })],
  ])('is rejected by its %s, even where it was let in', (reason, elsewhere) =>
    expect(unfitness(parsedGrant(g), frame, elsewhere)).toBe(reason),
  );
});

describe('a bounded grant', () => {
  const once = grantOf('g1', { maxUses: 1 });
  const other = grantOf('g2', { maxUses: 1 });
  it('is spent by a consuming decision, once', () => {
    const { world, used } = worldOf();
    expect(decided([once], work, { ...CONSUME, world }).usageTaken).toEqual({ grantId: 'g1' });
    expect(answer([once], work, { ...CONSUME, world })).toBe('grant_exhausted');
    expect(used('g1')).toBe(1);
  });
  it('is not spent by any other', () => {
    const { world, asked } = worldOf();
    expect(decided([once], work, { ...EXECUTE, world }).usageTaken).toBeUndefined();
    expect(decided([once], work, { ...DISCOVER, consume: true, world }).usageTaken).toBeUndefined();
    expect(asked).toEqual(['peek g1', 'peek g1']);
  });
  it('gives way to the next one when it is spent', () => {
    const { world, used } = worldOf({ uses: { g1: 1 } });
    expect(answer([once, other], work, { ...CONSUME, world })).toBe('allowed g2');
    expect([used('g1'), used('g2')]).toEqual([1, 1]);
  });
  it('is spent although a later grant would have been free: the order given is the order walked', () => {
    expect(answer([once, g], work, CONSUME)).toBe('allowed g1');
    expect(answer([g, once], work, CONSUME)).toBe('allowed g');
  });
  it('stops everything when its store cannot be asked, although a later grant would do', () => {
    const world = { use: () => 'unavailable' as const };
    expect(answer([once, g], work, { world })).toBe('usage_store_unavailable');
    expect(answer([g, once], work, { world })).toBe('allowed g');
  });
  it('stops everything when there is no store, and says that it is missing', () => {
    const { decision, explanation } = decided([once], work, { world: {} });
    expect([decision.reasonCode, explanation?.missingDependency]).toEqual(['usage_store_unavailable', 'usageStore']);
  });
  it('that is spent is no reason where it did not match', () => {
    const { world, asked } = worldOf({ uses: { g1: 1 } });
    expect(answer([once], read(['Elsewhere']), { world })).toBe('no_matching_grant');
    expect(asked).toEqual([]);
  });
});

describe("the host's ceiling", () => {
  const second = grantOf('g2');
  const refusing =
    (...ids: string[]): Narrow =>
    (allowed) =>
      ids.includes(allowed.matchedGrantId as string)
        ? { allowed: false, reasonCode: 'no_matching_grant', metadata: { rule: allowed.matchedGrantId } }
        : allowed;

  it('lets the next grant stand in for one it refuses', () =>
    expect(answer([g, second], work, { ceiling: refusing('g') })).toBe('allowed g2'));
  it("refuses in the kernel's own code, naming the first grant it overrode and why", () =>
    expect(decided([g, second], work, { ceiling: refusing('g', 'g2') }).decision).toEqual({
      allowed: false,
      reasonCode: 'host_policy_denied',
      matchedGrantId: 'g',
      metadata: { rule: 'g' },
    }));
  it('leaves no rejection behind', () => expect(decided([g], work, { ceiling: refusing('g') }).explanation?.rejections).toEqual([]));
  it('drops metadata that is no JSON object', () =>
    expect(decided([g], work, { ceiling: () => ({ allowed: false, metadata: [1] }) }).decision).not.toHaveProperty('metadata'));
  it('is not asked about what no grant allows', () => {
    const asked: unknown[] = [];
    answer([g], read(['Elsewhere']), { ceiling: (allowed) => asked.push(allowed) });
    expect(asked).toEqual([]);
  });
  it('is asked before a use is taken', () => {
    const { world, asked } = worldOf();
    expect(answer([grantOf('g', { maxUses: 1 })], work, { ...CONSUME, world, ceiling: refusing('g') })).toBe('host_policy_denied');
    expect(asked).toEqual([]);
  });
  it('outranks a spent grant', () => {
    const { world } = worldOf({ uses: { spent: 1 } });
    expect(answer([grantOf('spent', { maxUses: 1 }), g], work, { world, ceiling: refusing('g') })).toBe('host_policy_denied');
  });
  it('cannot change what is decided by editing what it is shown', () => {
    const meddling: Narrow = (allowed, request, shown) => {
      request.resource.path.push('x');
      shown.owner = carol;
      return allowed;
    };
    expect(answer([g, grantOf('h')], work, { ceiling: meddling })).toBe('allowed g');
  });
  it.each<[string, Narrow]>([
    ['nothing', () => undefined],
    ['a promise', (allowed) => Promise.resolve(allowed)],
    ['a text', () => 'allowed'],
    ['an answer without a verdict', () => ({ reasonCode: 'allowed' })],
    ['another grant', () => ({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'g2' })],
    ['no grant', () => ({ allowed: true, reasonCode: 'allowed' })],
  ])('that answers with %s is unavailable at once, although another grant would pass', (_, ceiling) =>
    expect(answer([g, second], work, { ceiling })).toBe('host_policy_unavailable'),
  );
  it('that throws is unavailable, and what it threw is kept for the host', () => {
    const thrown = new Error('fell');
    const { decision, ceilingThrew } = decided([g], work, {
      ceiling: () => {
        throw thrown;
      },
    });
    expect([decision, ceilingThrew]).toEqual([{ allowed: false, reasonCode: 'host_policy_unavailable' }, thrown]);
  });
  it('is handed the loaded policy untouched', () => {
    const policy = { deny: () => true };
    const seen: unknown[] = [];
    const ceiling: Narrow = (allowed, _request, _context, shown) => (seen.push(shown), allowed);
    answer([g], work, { ceiling, load: { policy: { status: 'loaded', policy, version: 'v1' } } });
    expect(seen[0]).toBe(policy);
  });
  it('is not asked, and unavailable, when its policy could not be loaded', () => {
    const load = { policy: { status: 'unavailable' } } as const;
    const asked: unknown[] = [];
    const ceiling: Narrow = (allowed) => (asked.push(allowed), allowed);
    expect(answer([g], work, { ceiling, load })).toBe('host_policy_unavailable');
    expect(answer([g], read(['Elsewhere']), { ceiling, load })).toBe('no_matching_grant');
    expect(answer([g], work, { load })).toBe('allowed g');
    expect(asked).toEqual([]);
  });
});

describe('what would have been needed', () => {
  const needed = (...asked: Parameters<typeof decided>): AuthorizationDecision['requiredAuthority'] =>
    decided(...asked).decision.requiredAuthority;
  it('is described when nothing matched', () =>
    expect(needed([], work)?.capabilities).toEqual([{ ...capability(['Work']), scope: 'exact' }]));
  it('names the owner only where the request did', () =>
    expect(needed([], read(['Work'], { owner: alice }))?.capabilities[0]?.resource.owner).toEqual(alice));
  it('is not described on discovery', () => expect(needed([], work, DISCOVER)).toBeUndefined());
  it('is not described on any other code', () => {
    expect(needed([grantOf('g', { maxUses: 1 })], work, { world: worldOf({ uses: { g: 1 } }).world })).toBeUndefined();
    expect(needed([g], read(['Work'], { owner: carol }))).toBeUndefined();
    expect(needed([g], work)).toBeUndefined();
  });
});

describe('authority that could not be loaded', () => {
  it('answers everything with one code, and keeps why in the metadata', () =>
    expect(decidedWithoutAuthority({ code: 'grant_scope_mismatch', detail: { grantId: 'x', reason: 'issuer' } }).decision).toEqual({
      allowed: false,
      reasonCode: 'authority_unavailable',
      metadata: { authority: { code: 'grant_scope_mismatch' } },
    }));
});

describe('an expiry inside a turn', () => {
  it('is seen at the next decision, under the same authority', () => {
    const expiring = [grantOf('g', { expiresAt: at('10:05:00') })];
    expect(answer(expiring, work, { now: instant('10:04:59.999') })).toBe('allowed g');
    expect(answer(expiring, work, { now: instant('10:05:00.000') })).toBe('no_matching_grant');
  });
});
