import { type PolicyDocument, type PolicyState, type Stop, ok } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, decideSync } from './asking.ts';
import { loadAuthority } from './authority.ts';
import { CompiledAuthority } from './compiled-authority.ts';
import { decide } from './decide.ts';
import { policyCeiling, policyInForce } from './policy-in-force.ts';
import type { PolicyLanguage } from './policy-language.ts';
import { rulesLanguage } from './rules-policy.ts';
import { NOW, alice, at, bob, context, dave, grantOf, read } from './testing/base-world.ts';

const rules = (...list: Extract<PolicyDocument, { rules: unknown }>['rules']): PolicyDocument => ({
  language: 'sharedos.rules/1',
  rules: list,
});
const stop = (target: Stop['target']): Stop => ({ target, reason: 'it deletes files', by: alice, at: at('09:00:00') });
const inForce = (state: Partial<PolicyState> = {}, languages: readonly PolicyLanguage[] = [rulesLanguage]) =>
  policyInForce({ document: rules(), stops: [], version: 7, ...state }, languages);

/** Decided on the compiled authority and on the plain walk, which must say the same. */
const decidedUnder = (policy: ReturnType<typeof inForce>, request = read(['Work'])) => {
  const loaded = loadAuthority(context(), [grantOf('bounded', { maxUses: 1 }), grantOf('g')], { policy });
  if (!loaded.ok) throw new Error(loaded.error.code);
  const options = { now: NOW, consume: false, mode: 'execute', ceiling: policyCeiling } as const;
  const world: World = { use: () => 'granted' };
  const { decision } = decideSync(decide(loaded.value, request, options), world);
  expect(decideSync(new CompiledAuthority(loaded.value, { ancestorsPinned: true }).decide(request, options), world).decision).toEqual(
    decision,
  );
  return decision;
};

describe('a decision under the policy in force', () => {
  it('is as without one where nothing is forbidden', () => {
    expect(decidedUnder(inForce())).toEqual({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'bounded' });
    expect(decidedUnder(inForce({ document: rules({ id: 'r', effect: 'forbid', actions: ['write'] }) }))).toMatchObject({ allowed: true });
  });
  it('is host_policy_denied by a rule, which its record names with the version', () =>
    expect(decidedUnder(inForce({ document: rules({ id: 'r', effect: 'forbid', path: ['Work'], reason: 'audit week' }) }))).toEqual({
      allowed: false,
      reasonCode: 'host_policy_denied',
      matchedGrantId: 'bounded',
      metadata: { hostPolicyVersion: '7', rule: 'r', ruleReason: 'audit week' },
    }));
  it('is not allowed by a policy: without a grant it stays no_matching_grant', () =>
    expect(decidedUnder(inForce({ document: rules({ id: 'r', effect: 'forbid' }) }), read(['Elsewhere'])).reasonCode).toBe(
      'no_matching_grant',
    ));
  it('is host_policy_denied for a stopped agent, and for everybody in a stopped namespace', () => {
    expect(decidedUnder(inForce({ stops: [stop({ kind: 'agent', agent: bob })] }))).toMatchObject({
      reasonCode: 'host_policy_denied',
      metadata: { rule: 'stop agent bob', ruleReason: 'it deletes files' },
    });
    expect(decidedUnder(inForce({ stops: [stop({ kind: 'namespace' })] })).reasonCode).toBe('host_policy_denied');
    expect(decidedUnder(inForce({ stops: [stop({ kind: 'agent', agent: dave })] })).allowed).toBe(true);
  });
  it('is stopped before the document is asked', () =>
    expect(decidedUnder(inForce({ stops: [stop({ kind: 'namespace' })], document: rules({ id: 'r', effect: 'forbid' }) }))).toMatchObject({
      metadata: { rule: 'stop namespace' },
    }));
});

describe('a policy that cannot be asked', () => {
  const cedar: PolicyDocument = { language: 'cedar/4', source: 'permit' };
  const speaking = (compile: PolicyLanguage['compile']): PolicyLanguage[] => [{ speaks: (language) => language === 'cedar/4', compile }];
  it.each([
    ['is in a language that nobody installed', inForce({ document: cedar })],
    [
      'means nothing in its language',
      inForce(
        { document: cedar },
        speaking(() => ({ ok: false, error: 'no' })),
      ),
    ],
    [
      'throws',
      inForce(
        { document: cedar },
        speaking(() =>
          ok(() => {
            throw new Error('broken');
          }),
        ),
      ),
    ],
  ])('makes every decision host_policy_unavailable when it %s', (_, policy) =>
    expect(decidedUnder(policy)).toEqual({ allowed: false, reasonCode: 'host_policy_unavailable' }),
  );
  it('may be in another language that is installed', () =>
    expect(
      decidedUnder(
        inForce(
          { document: cedar },
          speaking(() => ok(() => ({ rule: 'p0' }))),
        ),
      ).metadata,
    ).toEqual({
      hostPolicyVersion: '7',
      rule: 'p0',
    }));
});
