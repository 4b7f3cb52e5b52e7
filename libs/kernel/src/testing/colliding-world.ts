import type { Address, Capability, CapabilityConstraints, CapabilityGrant, CapabilityRequirement } from '@sharedos/contracts';
import type { AncestorAnswer, Ask, World } from '../asking.ts';
import { type HeldAuthority, holdAuthority } from '../authority.ts';
import type { AllowedDecision, HostCeiling, HostCeilingVerdict } from '../ceiling.ts';
import { invariant } from '../decider.ts';
import type { DecideOptions } from '../decide.ts';
import type { ParsedGrant } from '../parsed-grant.ts';
import { alice, at, bob, carol, context, instant, parsedGrant } from './base-world.ts';

// Worlds for comparing two ways to the same decision. Names collide, bounds lie on the instants asked about, and many grants
// cover the same place, so that the order of the walk is what tells them apart.

/** Takes choices off a list of numbers; what ran out is the first option. */
export class Choices {
  readonly #numbers: ArrayLike<number>;
  #at = 0;

  constructor(numbers: ArrayLike<number>) {
    this.#numbers = numbers;
  }

  below(limit: number): number {
    const number = this.#numbers[this.#at] ?? 0;
    this.#at += 1;
    return number % limit;
  }

  one<T>(options: readonly T[]): T {
    return options[this.below(options.length)] as T;
  }

  oneIn(times: number): boolean {
    return this.below(times) === times - 1;
  }
}

const [ADMITTED, NEAR, FAR] = ['10:00:00.000', '10:05:00.000', '10:10:00.000'] as const;
const NOWS: readonly number[] = [
  ...[ADMITTED, NEAR, '10:04:59.999', '10:00:00.001', FAR, '09:00:00.000', '11:00:00.000'].map(instant),
  NaN,
  Infinity,
];
const SEGMENTS = ['a', 'ab', 'A', '*'] as const;
const NAMESPACES = ['files', 'files', 'files', 'files.x'] as const;
const ACTIONS = ['read', 'read', 'list', '*', 'read:*'] as const;
const ROOTS = ['r0', 'r1', 'r2', 'r3', 'lost'] as const;

const drawPath = (choices: Choices): string[] => Array.from({ length: choices.below(4) }, () => choices.one(SEGMENTS));

const drawCapability = (choices: Choices): Capability => {
  const owner = choices.one<Address | undefined>([undefined, undefined, alice, carol]);
  return {
    resource: { namespace: choices.one(NAMESPACES), path: drawPath(choices), ...(owner === undefined ? {} : { owner }) },
    actions: Array.from({ length: 1 + choices.below(2) }, () => choices.one(ACTIONS)),
    scope: choices.one(['descendants', 'exact']),
  };
};

/** A start and an end that a grant may have together. */
const BOUNDS: readonly CapabilityConstraints[] = [
  ...[NEAR, FAR, '23:00:00', '10:00:00.001', ADMITTED].map((end) => ({ expiresAt: at(end) })),
  ...['09:00:00', ADMITTED, '10:00:00.001'].map((start) => ({ notBefore: at(start) })),
  { notBefore: at(ADMITTED), expiresAt: at(NEAR) },
];

const drawConstraints = (choices: Choices): CapabilityConstraints => ({
  ...(choices.oneIn(8) ? { purposes: choices.one([['p1'], ['p10'], ['p10', 'p1']]) } : {}),
  ...(choices.oneIn(2) ? choices.one(BOUNDS) : {}),
  ...(choices.oneIn(5) ? { maxUses: 1 + choices.below(2) } : {}),
  ...(choices.oneIn(4) ? { delegationDepth: choices.below(3) } : {}),
});

const drawHeld = (choices: Choices, id: string): CapabilityGrant => ({
  id,
  namespaceId: 'w1',
  subject: bob,
  issuer: alice,
  capabilities: Array.from({ length: choices.oneIn(10) ? 12 : 1 + choices.below(2) }, () => drawCapability(choices)),
  constraints: drawConstraints(choices),
  issuedAt: at(choices.one(['09:00:00', '09:00:00', '09:00:00', ADMITTED, '10:00:00.001'])),
  ...(choices.oneIn(12) ? { revokedAt: at(choices.one([ADMITTED, NEAR, '09:30:00'])) } : {}),
  ...(choices.oneIn(3) ? { parentGrantId: choices.one(ROOTS) } : {}),
});

const EVERYTHING: Capability[] = ['files', 'files.x'].map((namespace) => ({
  resource: { namespace, path: [] },
  actions: ['*'],
  scope: 'descendants',
}));

/** An ancestor that permits all, but for what is drawn to go wrong with it. */
const drawAncestor = (choices: Choices, index: number): CapabilityGrant => {
  const sound = !choices.oneIn(2);
  const next = choices.one([undefined, `r${index + 1}`, 'r0', undefined]);
  return {
    id: `r${index}`,
    namespaceId: !sound && choices.oneIn(8) ? 'w2' : 'w1',
    subject: !sound && choices.oneIn(8) ? carol : alice,
    issuer: alice,
    capabilities: !sound && choices.oneIn(6) ? [drawCapability(choices)] : EVERYTHING,
    constraints: {
      ...(sound || !choices.oneIn(3) ? {} : { expiresAt: at(choices.one([NEAR, FAR, '23:00:00', ADMITTED])) }),
      ...(!sound && choices.oneIn(6) ? { purposes: ['p1', 'p10'] } : {}),
      ...(!sound && choices.oneIn(6) ? {} : { delegationDepth: 9 - index }),
    },
    issuedAt: at('08:00:00'),
    ...(!sound && choices.oneIn(6) ? { revokedAt: at(choices.one([ADMITTED, NEAR])) } : {}),
    ...(next === undefined || next === `r${index}` ? {} : { parentGrantId: next }),
  };
};

/** The same numbers in every run: what a run draws by chance is which of the grants meet, and what is asked of them. */
const repeatable = (seed: number): ArrayLike<number> => {
  let state = seed;
  return Uint8Array.from({ length: 256 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
};

const POOL: readonly ParsedGrant[] = Array.from({ length: 1_024 }, (_, index) =>
  parsedGrant(drawHeld(new Choices(repeatable(index + 1)), `g${index}`)),
);
const ANCESTORS: readonly (readonly ParsedGrant[])[] = [0, 1, 2, 3].map((index) =>
  Array.from({ length: 64 }, (_, variant) => parsedGrant(drawAncestor(new Choices(repeatable(7_000 + 64 * index + variant)), index))),
);

export interface Question {
  readonly request: CapabilityRequirement;
  readonly options: DecideOptions;
}

export interface CollidingWorld {
  readonly authority: HeldAuthority;
  readonly questions: readonly Question[];
  /** Ports that answer the same in each, with counters of their own, and keep what they were asked. */
  readonly open: () => { readonly world: World; readonly asked: Ask[] };
}

export const drawCollidingWorld = (choices: Choices): CollidingWorld => {
  const held = new Set(
    Array.from({ length: choices.one([2, 4, 8, 1, 0, 24]) }, () => POOL[choices.below(32) * 32 + choices.below(32)] as ParsedGrant),
  );
  const policy = choices.one([undefined, undefined, undefined, { status: 'unavailable' as const }]);
  const loaded = holdAuthority(
    context({ owner: choices.one([alice, alice, carol]), ...(choices.oneIn(40) ? { traceId: '' } : {}) }),
    [...held],
    policy === undefined ? {} : { policy },
  );
  invariant(loaded.ok, 'grants of the pool can be held together');
  const stored = ANCESTORS.map((variants) => choices.one(variants));
  return { authority: loaded.value, questions: drawQuestions(choices), open: drawPorts(choices, stored) };
};

const drawQuestions = (choices: Choices): readonly Question[] => {
  const ancestorsMax = choices.one([undefined, undefined, undefined, 1]);
  const installed = {
    ...(choices.oneIn(6) ? { ceiling: ceilingOf(choices.below(3)) } : {}),
    checks: { verifier: choices.oneIn(12), liveRevocation: choices.oneIn(8) },
  };
  return Array.from({ length: 3 }, () => ({
    request: drawRequest(choices),
    options: {
      now: choices.one(NOWS),
      consume: choices.oneIn(2),
      mode: choices.one(['execute', 'execute', 'discover']),
      ancestorsMax,
      ...installed,
    },
  }));
};

const drawRequest = (choices: Choices): CapabilityRequirement => {
  const owner = choices.one<Address | undefined>([undefined, undefined, undefined, undefined, alice, carol]);
  const path = choices.oneIn(20) ? ['..'] : drawPath(choices);
  return {
    resource: { namespace: choices.one(NAMESPACES), path, ...(owner === undefined ? {} : { owner }) },
    action: choices.oneIn(20) ? ' read ' : choices.one(ACTIONS),
  };
};

/** Refuses, or breaks at, some grants by their ids. */
const ceilingOf = (kind: number): HostCeiling => ({
  narrow: (allowed: AllowedDecision): HostCeilingVerdict => {
    const digit = Number(allowed.matchedGrantId.slice(-1));
    if (kind === 2 && digit === 0) throw new Error('the ceiling fell');
    return digit % 2 === kind % 2
      ? { allowed: false, reasonCode: 'host_policy_denied', metadata: { rule: allowed.matchedGrantId } }
      : allowed;
  },
});

const drawPorts = (choices: Choices, stored: readonly ParsedGrant[]): CollidingWorld['open'] => {
  const usage = choices.one(['sound', 'sound', 'sound', 'sound', 'missing', 'failing']);
  const resolver = choices.one(['sound', 'sound', 'sound', 'sound', 'sound', 'missing', 'failing', 'lying']);
  const revoked = choices.one([['g1', 'r1'], ['r0'], [], undefined]);
  const spent = choices.below(3);
  const ancestor = (grantId: string): AncestorAnswer => {
    if (resolver === 'failing') return 'failed';
    const found = resolver === 'lying' ? stored[0] : stored.find(({ grant }) => grant.id === grantId);
    return found === undefined ? 'not_found' : { found };
  };
  return () => {
    const asked: Ask[] = [];
    const used = new Map<string, number>();
    const world: World = {
      ...(usage === 'missing'
        ? {}
        : {
            use: (ask) => {
              asked.push(ask);
              if (usage === 'failing') return 'unavailable';
              const seen = used.get(ask.grantId) ?? (ask.grantId.endsWith('1') ? spent : 0);
              if (seen >= ask.max) return 'exhausted';
              if (ask.consume) used.set(ask.grantId, seen + 1);
              return 'granted';
            },
          }),
      ...(resolver === 'missing'
        ? {}
        : {
            ancestor: (ask) => {
              asked.push(ask);
              return ancestor(ask.grantId);
            },
          }),
      verify: (ask) => {
        asked.push(ask);
        return ask.grant.id.endsWith('3') ? 'rejected' : 'verified';
      },
      revocation: (ask) => {
        asked.push(ask);
        return revoked === undefined ? 'unavailable' : { revision: 'r@1', revokedGrantIds: revoked };
      },
    };
    return { world, asked };
  };
};
