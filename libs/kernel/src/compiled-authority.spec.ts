import type { CapabilityGrant } from '@sharedos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Ask, type World, decideSync } from './asking.ts';
import { type CompileOptions, CompiledAuthority } from './compiled-authority.ts';
import { type Decided, decide } from './decide.ts';
import { parseRequirement } from './parsed-requirement.ts';
import {
  CONSUME,
  DISCOVER,
  EXECUTE,
  NOW,
  alice,
  at,
  authorityOf,
  bob,
  capability,
  carol,
  context,
  grantOf,
  instant,
  parsedGrant,
  read,
  worldOf,
} from './testing/base-world.ts';
import { Choices, type CollidingWorld, drawCollidingWorld } from './testing/colliding-world.ts';

/** Worlds compared in each of three ways: three questions in each, one after the other of the same compiled authority. */
const WORLDS = 7_000;
/** More choices than the largest world takes. */
const CHOICES = 160;

const work = read(['Work']);
const compile = (grants: readonly CapabilityGrant[], options: CompileOptions = {}): CompiledAuthority =>
  new CompiledAuthority(authorityOf(grants), options);

describe('a compiled authority', () => {
  it('decides as the walk does, asks what it asks and gives the reasons it gives', () => {
    const met = countedWorlds((world, met) => {
      const compiled = new CompiledAuthority(world.authority, ancestorsMaxOf(world));
      const [here, there] = [world.open(), world.open()];
      for (const { request, options } of world.questions) {
        const expected = decideSync(decide(world.authority, request, options), there.world);
        expect(plain(decideSync(compiled.decide(request, options), here.world))).toEqual(plain(expected));
        met(`${options.mode} ${expected.decision.reasonCode}`);
        if ((expected.explanation?.rejections.length ?? 0) > 2) met('many rejections');
      }
      expect(here.asked).toEqual(there.asked);
    });
    expect(met).toEqual(
      new Set([
        'many rejections',
        ...['execute', 'discover'].flatMap((mode) => ['allowed', ...DENIALS, 'authority_unavailable'].map((code) => `${mode} ${code}`)),
      ]),
    );
  });

  it('decides the same where ancestors are pinned, and asks for each of them once', () => {
    const met = countedWorlds((world, met) => {
      const compiled = new CompiledAuthority(world.authority, { ancestorsPinned: true, ...ancestorsMaxOf(world) });
      const [here, there] = [world.open(), world.open()];
      for (const { request, options } of world.questions) {
        const before = there.asked.length - here.asked.length;
        const expected = decideSync(decide(world.authority, request, options), there.world);
        expect(plain(decideSync(compiled.decide(request, options), here.world))).toEqual(plain(expected));
        if (there.asked.length - here.asked.length > before) met(`spared ${expected.decision.reasonCode}`);
      }
      expect(here.asked.filter(isNoAncestor)).toEqual(there.asked.filter(isNoAncestor));
    });
    for (const code of ['allowed', 'delegation_chain_invalid', 'grant_exhausted']) expect(met).toContain(`spared ${code}`);
  });

  it('settles nothing in another way than the walk decides it', () => {
    const met = countedWorlds((world, met) => {
      const compiled = new CompiledAuthority(world.authority, { ancestorsPinned: true, ...ancestorsMaxOf(world) });
      const { world: ports } = world.open();
      for (const { request, options } of world.questions) {
        const asked = { ...options, ceiling: undefined, checks: undefined };
        const settled = compiled.settle(request, options.now, options.mode);
        const { requiredAuthority: _, ...expected } = decideSync(decide(world.authority, request, asked), ports).decision;
        if (settled !== undefined) expect(settled).toEqual(expected);
        met(`${options.mode} ${settled === undefined ? 'left open' : settled.reasonCode}`);
        decideSync(compiled.decide(request, asked), ports);
      }
    });
    for (const mode of ['execute', 'discover'])
      for (const code of ['left open', 'allowed', 'invalid_context', 'invalid_request', 'no_matching_grant'])
        expect(met).toContain(`${mode} ${code}`);
  });
});

const DENIALS = [
  'invalid_context',
  'invalid_request',
  'no_matching_grant',
  'grant_exhausted',
  'delegation_chain_invalid',
  'delegation_chain_unverified',
  'usage_store_unavailable',
  'host_policy_denied',
  'host_policy_unavailable',
];

const ancestorsMaxOf = ({ questions }: CollidingWorld): CompileOptions => ({ ancestorsMax: questions[0]?.options.ancestorsMax });
const isNoAncestor = ({ ask }: Ask): boolean => ask !== 'ancestor';
/** With what is found out only when it is read. */
const plain = ({ explanation, ...decided }: Decided): Decided => ({ ...decided, ...(explanation === undefined ? {} : { explanation }) });

/** @returns What was met: a comparison that never came to a code would have shown nothing of it. */
const countedWorlds = (compare: (world: CollidingWorld, met: (what: string) => void) => void): ReadonlySet<string> => {
  const all = new Set<string>();
  fc.assert(
    fc.property(fc.uint8Array({ minLength: CHOICES, maxLength: CHOICES, size: 'max' }), (numbers) =>
      compare(drawCollidingWorld(new Choices(numbers)), (what) => all.add(what)),
    ),
    { numRuns: WORLDS, seed: 20_260_301 },
  );
  return all;
};

describe('what is settled without asking', () => {
  const g = grantOf();
  const settled = (compiled: CompiledAuthority, request = work, now = NOW) => compiled.settle(request, now, 'execute');

  it('is an allow by the first unbounded grant', () =>
    expect(settled(compile([g, grantOf('h')]))).toEqual({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'g' }));
  it('is a denial when no grant covers the request', () =>
    expect(settled(compile([g]), read(['Workbench']))).toEqual({ allowed: false, reasonCode: 'no_matching_grant' }));
  it('is a denial that nobody can edit for the next one', () => expect(Object.isFrozen(settled(compile([])))).toBe(true));
  it('is not what a bounded grant comes first for, although a later one would allow it', () =>
    expect(settled(compile([grantOf('once', { maxUses: 1 }), g]))).toBeUndefined());
  it('is not what expired since the admission, to the millisecond', () => {
    const compiled = compile([grantOf('g', { expiresAt: at('10:05:00') })]);
    expect(settled(compiled, work, instant('10:04:59.999'))?.allowed).toBe(true);
    expect(settled(compiled, work, instant('10:05:00.000'))).toBeUndefined();
  });
  it('takes a requirement that was read before, and one that was not', () => {
    const parsed = parseRequirement(work);
    expect(settled(compile([g]), parsed as typeof work)).toEqual(settled(compile([g]), work));
  });
  it('is nothing for a turn that was never admitted', () =>
    expect(new CompiledAuthority(authorityOf([g], context({ now: 'yesterday' }))).settle(work, NOW, 'execute')).toEqual({
      allowed: false,
      reasonCode: 'invalid_context',
    }));
});

describe('a derived grant of a compiled authority', () => {
  const root = grantOf('r', { subject: alice, issuer: carol, delegationDepth: 1, expiresAt: at('10:05:00') });
  const child = grantOf('c', { parentGrantId: 'r', expiresAt: at('10:05:00') });
  const pinned = (): CompiledAuthority => compile([child], { ancestorsPinned: true });
  const ask = (compiled: CompiledAuthority, { world }: { readonly world: World }, now = NOW): string =>
    decideSync(compiled.decide(work, { ...EXECUTE, now }), world).decision.reasonCode;

  it('has its ancestors looked up again at each decision, as they are not frozen', () => {
    const compiled = compile([child]);
    const ports = worldOf({ ancestors: [root] });
    expect([ask(compiled, ports), ask(compiled, ports), ask(compiled, worldOf())]).toEqual([
      'allowed',
      'allowed',
      'delegation_chain_unverified',
    ]);
    expect(ports.asked).toEqual(['ancestor r', 'ancestor r']);
  });
  it('has them looked up once where they are pinned, and is settled from then on', () => {
    const [compiled, ports] = [pinned(), worldOf({ ancestors: [root] })];
    expect(compiled.settle(work, NOW, 'execute')).toBeUndefined();
    expect([ask(compiled, ports), ask(compiled, ports)]).toEqual(['allowed', 'allowed']);
    expect(ports.asked).toEqual(['ancestor r']);
    expect(compiled.settle(work, NOW, 'execute')?.matchedGrantId).toBe('c');
  });
  it('expires with its ancestor, looked up or not', () => {
    const long = grantOf('r', { subject: alice, issuer: carol, delegationDepth: 1 });
    const brief = grantOf('m', { subject: bob, issuer: alice, parentGrantId: 'r', expiresAt: at('10:05:00'), delegationDepth: 0 });
    const [compiled, ports] = [
      compile([grantOf('c', { parentGrantId: 'm', expiresAt: at('10:05:00'), issuer: alice })], { ancestorsPinned: true }),
      worldOf({ ancestors: [brief, long] }),
    ];
    // The middle link may not delegate: an invalid chain stays invalid for its first reason until something on it expires.
    expect(ask(compiled, ports)).toBe('delegation_chain_invalid');
    const late = decideSync(compiled.decide(work, { ...EXECUTE, now: instant('10:05:00.000') }), ports.world);
    expect(late.decision.reasonCode).toBe('no_matching_grant');
    const [sound, store] = [pinned(), worldOf({ ancestors: [root] })];
    expect(ask(sound, store)).toBe('allowed');
    expect(ask(sound, store, instant('10:05:00.000'))).toBe('no_matching_grant');
  });
  it.each<[string, World]>([
    ['its store failed', { ancestor: () => 'failed' }],
    ['its store did not find it', { ancestor: () => 'not_found' }],
    ['its store answered with another', { ancestor: () => ({ found: parsedGrant(grantOf('another')) }) }],
    ['there was no store', {}],
  ])('is asked about again after %s', (_, world) => {
    const compiled = pinned();
    const codes = [ask(compiled, { world }), ask(compiled, worldOf({ ancestors: [root] }))];
    expect(codes).toEqual(['delegation_chain_unverified', 'allowed']);
  });
  it('is judged anew by another length of chain than it was compiled for', () => {
    const [compiled, { world }] = [pinned(), worldOf({ ancestors: [root] })];
    expect(ask(compiled, { world })).toBe('allowed');
    const shorter = decideSync(compiled.decide(work, { ...EXECUTE, ancestorsMax: 0 }), world);
    expect(shorter.decision.metadata).toEqual({ delegation: { code: 'chain_too_long', grantId: 'c' } });
  });
  it('is not settled while it is bounded: its uses are asked at each decision', () => {
    const compiled = compile([grantOf('c', { parentGrantId: 'r', expiresAt: at('10:05:00'), maxUses: 1 })], { ancestorsPinned: true });
    const { world, asked } = worldOf({ ancestors: [root] });
    const codes = [1, 2].map(() => decideSync(compiled.decide(work, CONSUME), world).decision.reasonCode);
    expect(codes).toEqual(['allowed', 'grant_exhausted']);
    expect(asked).toEqual(['ancestor r', 'take c', 'take c']);
  });
});

describe('a large compiled authority', () => {
  const many = Array.from({ length: 256 }, (_, index) => grantOf(`g${index}`, { capabilities: [capability([`p${index % 64}`, 'docs'])] }));

  it('finds the first of the grants that cover a path, whatever the number that do not', () => {
    const compiled = compile(many);
    for (const index of [0, 17, 63]) {
      expect(compiled.settle(read([`p${index}`, 'docs', 'x']), NOW, 'execute')?.matchedGrantId).toBe(`g${index}`);
      expect(compiled.settle(read([`p${index}`, 'other']), NOW, 'execute')?.reasonCode).toBe('no_matching_grant');
    }
  });
  it('shows a tool by the first grant below its ceiling', () => {
    const compiled = compile([...many].reverse());
    expect(compiled.settle(read([]), NOW, 'discover')?.matchedGrantId).toBe('g255');
    expect(compiled.settle(read(['p3']), NOW, 'discover')?.matchedGrantId).toBe('g195');
    expect(decideSync(compiled.decide(read(['p64']), DISCOVER), {}).decision.reasonCode).toBe('no_matching_grant');
  });
});
