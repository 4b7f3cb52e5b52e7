import type { AccessContext, CapabilityRequirement, ForbidRule, PolicyRule } from '@sharedos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CompiledPolicy } from './policy-language.ts';
import { rulesLanguage } from './rules-policy.ts';
import { alice, at, bob, carol, context, dave, read } from './testing/base-world.ts';

const compiled = (...rules: readonly PolicyRule[]): CompiledPolicy => {
  const outcome = rulesLanguage.compile({ language: 'sharedos.rules/1', rules: [...rules] });
  if (!outcome.ok) throw new Error(outcome.error);
  return outcome.value;
};
const forbid = (more: Partial<ForbidRule> = {}): ForbidRule => ({ id: 'r', effect: 'forbid', ...more });
const names = (rule: PolicyRule, request = read(['Work', 'Plan']), changes: Partial<AccessContext> = {}) =>
  compiled(rule)(request, context(changes))?.rule;

describe('a rule', () => {
  it('that states nothing forbids everything', () => expect(names(forbid())).toBe('r'));
  it.each([
    ['namespace', { namespaces: ['files', 'repo'] }, { namespaces: ['files.x'] }],
    ['path, itself and what is below', { path: ['Work'] }, { path: ['Wor'] }],
    ['path, to its end', { path: ['Work', 'Plan'] }, { path: ['Work', 'Plan', 'Draft'] }],
    ['action', { actions: ['write', 'read'] }, { actions: ['reader'] }],
    ['actor', { actors: [dave, bob] }, { actors: [{ kind: 'human' as const, userId: 'bob' }] }],
    ['purpose', { purposes: ['p2', 'p1'] }, { purposes: ['p10'] }],
    ['time of day', { daily: { from: '10:00', to: '10:01' } }, { daily: { from: '09:00', to: '10:00' } }],
  ] as const)('forbids by %s, and nothing beside it', (_, inside, outside) => {
    expect(names(forbid(inside as Partial<ForbidRule>))).toBe('r');
    expect(names(forbid(outside as Partial<ForbidRule>))).toBeUndefined();
  });
  it('applies only where all that it states is met', () => {
    const both = forbid({ actions: ['read'], actors: [dave] });
    expect(names(both)).toBeUndefined();
    expect(names(both, read([]), { actor: dave })).toBe('r');
  });
  it('about a path does not hide a tool that is declared above it', () =>
    expect(names(forbid({ path: ['Work'] }), read([]))).toBeUndefined());
  it('about one action meets a request for all of them', () => {
    expect(names(forbid({ actions: ['write'] }), read(['Work'], { action: '*' }))).toBe('r');
    expect(names(forbid({ actions: ['*'] }), read(['Work'], { action: 'delete' }))).toBe('r');
  });
  it.each([
    ['22:00', '23:59:59', true],
    ['22:00', '00:00:00', true],
    ['22:00', '05:59:59', true],
    ['22:00', '06:00:00', false],
    ['22:00', '21:59:59', false],
    ['06:00', '13:00:00', true],
  ])('of the day from %s to 06:00 goes past midnight: at %s', (from, time, applies) =>
    expect(names(forbid({ daily: { from, to: '06:00' } }), read([]), { now: at(time) })).toBe(applies ? 'r' : undefined),
  );
  it('of a time of day is judged in UTC', () =>
    expect(names(forbid({ daily: { from: '08:00', to: '09:00' } }), read([]), { now: '2026-01-01T10:30:00+02:00' })).toBe('r'));
  it('of a time of day applies at an instant that cannot be read', () =>
    expect(names(forbid({ daily: { from: '08:00', to: '09:00' } }), read([]), { now: 'soon' })).toBe('r'));
});

describe('a freeze', () => {
  it('forbids an actor everything, the management plane too', () => {
    expect(names({ id: 'f', effect: 'freeze', actor: bob }, read([], { namespace: 'sharedos.admin' }))).toBe('f');
    expect(names({ id: 'f', effect: 'freeze', actor: dave })).toBeUndefined();
  });
  it('of everybody leaves its operators what they need to end it', () => {
    const everybody = { id: 'f', effect: 'freeze' } as const;
    expect(names(everybody)).toBe('f');
    expect(names(everybody, read(['escalation'], { namespace: 'sharedos' }))).toBe('f');
    expect(names(everybody, read(['policy'], { namespace: 'sharedos.admin' }))).toBeUndefined();
    expect(names(everybody, read(['audit'], { namespace: 'sharedos' }))).toBeUndefined();
  });
});

describe('a document of rules', () => {
  it.each([
    ['two rules of one id', [forbid(), forbid()]],
    ['a rule it does not know', [{ id: 'r', effect: 'allow' }]],
  ])('is refused with %s', (_, rules) =>
    expect(rulesLanguage.compile({ language: 'sharedos.rules/1', rules: rules as PolicyRule[] }).ok).toBe(false),
  );
  it('is refused when its rules name more places than are worth remembering', () => {
    const many = (prefix: string) => Array.from({ length: 64 }, (_, n) => `${prefix}${n}`);
    const wide = (count: number) =>
      Array.from({ length: count }, (_, n) => forbid({ id: `r${n}`, namespaces: many('n'), actions: many('a') }));
    expect(rulesLanguage.compile({ language: 'sharedos.rules/1', rules: wide(16) }).ok).toBe(true);
    expect(rulesLanguage.compile({ language: 'sharedos.rules/1', rules: wide(17) })).toMatchObject({ ok: false });
  });
  it('is in its own language alone', () => {
    expect(rulesLanguage.speaks('sharedos.rules/1')).toBe(true);
    expect(rulesLanguage.speaks('sharedos.rules/2')).toBe(false);
    expect(rulesLanguage.compile({ language: 'cedar/4', source: 'permit' }).ok).toBe(false);
  });
  it('forbids as its rules read, one by one, and names the first', () => {
    const segment = fc.constantFrom('a', 'ab', 'b');
    const path = fc.array(segment, { maxLength: 3 });
    const actor = fc.constantFrom(alice, bob, carol);
    const some = <T>(value: fc.Arbitrary<T>) => fc.option(fc.array(value, { minLength: 1, maxLength: 2 }), { nil: undefined });
    const daily = fc.option(
      fc.constantFrom({ from: '00:00', to: '12:00' }, { from: '23:00', to: '01:00' }, { from: '05:00', to: '05:00' }),
      { nil: undefined },
    );
    const rule = fc.record({
      namespaces: some(fc.constantFrom('files', 'repo')).map((list) => list && [...new Set(list)]),
      path: fc.option(path, { nil: undefined }),
      actions: some(fc.constantFrom('read', 'write', '*')),
      actors: some(actor),
      purposes: some(fc.constantFrom('p1', 'p2')).map((list) => list && [...new Set(list)]),
      daily,
    });
    let forbidden = 0;
    fc.assert(
      fc.property(
        fc.array(rule, { maxLength: 6 }),
        fc.record({
          namespace: fc.constantFrom('files', 'repo', 'mail'),
          path,
          action: fc.constantFrom('read', 'write', 'delete', '*'),
          actor,
          purpose: fc.constantFrom('p1', 'p2'),
          hour: fc.integer({ min: 0, max: 23 }),
        }),
        (parts, asked) => {
          const rules = parts.map((part, place): ForbidRule => ({ ...defined(part), id: `r${place}`, effect: 'forbid' }));
          const request: CapabilityRequirement = { resource: { namespace: asked.namespace, path: asked.path }, action: asked.action };
          const frame = context({ actor: asked.actor, purpose: asked.purpose, now: at(`${String(asked.hour).padStart(2, '0')}:30:00`) });
          const expected = rules.find((candidate) => longhand(candidate, request, frame, asked.hour * 60 + 30))?.id;
          if (expected !== undefined) forbidden += 1;
          expect(compiled(...rules)(request, frame)?.rule).toBe(expected);
        },
      ),
      { numRuns: 2_000 },
    );
    expect(forbidden).toBeGreaterThan(0);
  });
});

const defined = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;

/** What a rule says, read out. */
const longhand = (rule: ForbidRule, { resource, action }: CapabilityRequirement, frame: AccessContext, minute: number): boolean => {
  const { namespaces, path, actions, actors, purposes, daily } = rule;
  if (namespaces !== undefined && !namespaces.includes(resource.namespace)) return false;
  if (path !== undefined && path.some((segment, depth) => resource.path[depth] !== segment)) return false;
  if (actions !== undefined && !actions.includes(action) && !actions.includes('*') && action !== '*') return false;
  if (actors !== undefined && !actors.some((actor) => JSON.stringify(actor) === JSON.stringify(frame.actor))) return false;
  if (purposes !== undefined && !purposes.includes(frame.purpose)) return false;
  if (daily === undefined) return true;
  const [from, to] = [daily.from, daily.to].map((time) => Number(time.split(':')[0]) * 60 + Number(time.split(':')[1])) as [number, number];
  for (let step = from; ; step = (step + 1) % 1440) {
    if (step === minute) return true;
    if ((step + 1) % 1440 === to) return false;
  }
};
