import {
  type Address,
  type Capability,
  type CapabilityConstraints,
  type CapabilityRequest,
  CapabilityGrant,
  hashOf,
} from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { escalationAutoDecided } from './audit.ts';
import { type Precedent, type PrecedentLookup, type PrecedentProposal, admitPrecedent } from './precedent.ts';
import { precedentDigest, precedentKeyOf } from './precedent-key.ts';
import { NOW, alice, at, bob, capability, carol, context, dave, grantOf } from './testing/base-world.ts';

const DAY_MS = 86_400_000;
const work = capability(['Work']);
const plan = capability(['Work', 'plan.md'], { scope: 'exact' });

const asking = (changes: Partial<CapabilityRequest> = {}): CapabilityRequest => ({
  id: 'capreq-now',
  namespaceId: 'w1',
  requester: bob,
  owner: alice,
  requestedAt: at('10:00:00'),
  capabilities: [work],
  purpose: 'p1',
  ...changes,
});

type RowChanges = Partial<CapabilityRequest> & { readonly decidedAt?: string };

const approved = (
  id: string,
  capabilities: Capability[] = [work],
  constraints: CapabilityConstraints = {},
  changes: RowChanges = {},
): Precedent => {
  const { decidedAt = at('09:00:00'), ...ask } = changes;
  return { requestId: id, key: precedentKeyOf(asking(ask)), decidedAt, outcome: 'approved', capabilities, constraints };
};
const refused = (id: string, { decidedAt = at('09:00:00'), ...ask }: RowChanges = {}): Precedent => ({
  requestId: id,
  key: precedentKeyOf(asking(ask)),
  decidedAt,
  outcome: 'refused',
});
/** The same question but for its words: another purpose makes another key. */
const SIMILAR = { purpose: 'p2' };

interface Situation {
  readonly request?: CapabilityRequest;
  readonly rows?: readonly Precedent[];
  /** Of the questions at issue; the rows themselves when absent. */
  readonly newest?: readonly Precedent[];
  /** `null` when the store could not be asked. */
  readonly lookup?: PrecedentLookup | null;
  readonly proposal?: Partial<PrecedentProposal>;
}

const admit = ({
  request = asking(),
  rows = [approved('r1')],
  newest = rows,
  lookup = { cited: rows, newest },
  proposal = {},
}: Situation) =>
  admitPrecedent({
    request,
    lookup: lookup ?? undefined,
    now: NOW,
    ageMaxMs: DAY_MS,
    proposal: {
      matcher: 'same-words/3',
      citedRequestIds: rows.map(({ requestId }) => requestId),
      answer: { allowed: true, capabilities: [work] },
      ...proposal,
    },
  });
const refusal = (situation: Situation): string | undefined => {
  const admitted = admit(situation);
  return admitted.ok ? undefined : admitted.error;
};
const DENY = { allowed: false } as const;
const allow = (...capabilities: Capability[]) => ({ allowed: true, capabilities }) as const;

describe('an ask that is answered by precedent', () => {
  it('16: is allowed where the same question was approved, and not as narrowed', () =>
    expect(admit({})).toEqual({
      ok: true,
      value: {
        allowed: true,
        narrowed: false,
        capabilities: [work],
        constraints: { delegationDepth: 0 },
        citedRequestIds: ['r1'],
        match: 'exact',
        metadata: { autoDecided: { matcher: 'same-words/3', citedRequestIds: ['r1'], match: 'exact' } },
      },
    }));

  it('17: is allowed narrowed where a similar question was approved', () =>
    expect(admit({ rows: [approved('r1', [work], {}, SIMILAR)], proposal: { answer: allow(plan) } })).toMatchObject({
      ok: true,
      value: { allowed: true, narrowed: true, capabilities: [plan], match: 'fuzzy' },
    }));

  it('20: is refused by a similar refusal of the same owner, whoever had asked', () =>
    expect(admit({ rows: [refused('r1', { requester: dave })], proposal: { answer: DENY } })).toEqual({
      ok: true,
      value: {
        allowed: false,
        citedRequestIds: ['r1'],
        match: 'fuzzy',
        metadata: { autoDecided: { matcher: 'same-words/3', citedRequestIds: ['r1'], match: 'fuzzy' } },
      },
    }));

  it('may be refused even by citing an approval', () => expect(admit({ proposal: { answer: DENY } }).ok).toBe(true));

  it('is exact only if every cited question is the same', () =>
    expect(admit({ rows: [approved('r1'), approved('r2', [work], {}, SIMILAR)] })).toMatchObject({
      value: { match: 'fuzzy', narrowed: true },
    }));

  it('names each cited precedent once', () =>
    expect(admit({ proposal: { citedRequestIds: ['r1', 'r1'] } })).toMatchObject({ value: { citedRequestIds: ['r1'] } }));

  it('gets the tightest of all limits, and may never be passed on', () =>
    expect(
      admit({
        rows: [
          approved('r1', [work], { expiresAt: at('12:00:00'), maxUses: 5, delegationDepth: 3, purposes: ['p1', 'p2'] }),
          approved('r2', [work], { expiresAt: at('11:00:00'), notBefore: at('08:00:00'), maxUses: 2, purposes: ['p1'] }),
        ],
      }),
    ).toMatchObject({
      value: { constraints: { expiresAt: at('11:00:00'), notBefore: at('08:00:00'), maxUses: 2, purposes: ['p1'], delegationDepth: 0 } },
    }));
});

describe('a proposal that is not admitted', () => {
  const other = capability(['Home']);
  it.each<[code: string, situation: string, Situation]>([
    ['auto_decision_unmarked', 'names no matcher', { proposal: { matcher: ' ' } }],
    ['no_precedent_cited', 'cites nothing', { proposal: { citedRequestIds: [] } }],
    ['empty_proposed_capability', 'allows nothing', { proposal: { answer: allow() } }],
    ['precedent_unavailable', 'is judged while the precedents cannot be read', { lookup: null, proposal: { answer: DENY } }],
    ['precedent_unavailable', '23: cites two, of which one is there', { proposal: { citedRequestIds: ['r1', 'r2'] } }],
    [
      'precedent_unavailable',
      'cites one and is given two',
      { rows: [approved('r1'), approved('r2')], proposal: { citedRequestIds: ['r1'] } },
    ],
    [
      'precedent_unavailable',
      'refuses by one and is given two',
      { rows: [refused('r1'), refused('r2')], proposal: { citedRequestIds: ['r1'], answer: DENY } },
    ],
    ['precedent_unavailable', 'cites one and is given another', { proposal: { citedRequestIds: ['r2'] } }],
    [
      'precedent_unavailable',
      'is given one twice',
      { rows: [approved('r1'), approved('r1')], proposal: { citedRequestIds: ['r1', 'r2'] } },
    ],
    ['precedent_not_this_owner', "leans on another owner's answer", { rows: [approved('r1', [work], {}, { owner: carol })] }],
    ['precedent_not_this_owner', 'leans on an answer of another namespace', { rows: [approved('r1', [work], {}, { namespaceId: 'w2' })] }],
    [
      'precedent_not_this_owner',
      "refuses by another owner's refusal",
      { rows: [refused('r1', { owner: carol })], proposal: { answer: DENY } },
    ],
    ['allow_cites_refusal', '19: allows by a refusal', { rows: [refused('r1')] }],
    [
      'precedent_not_this_requester',
      '21: allows for one agent what another was allowed',
      { rows: [approved('r1', [work], {}, { requester: dave })] },
    ],
    ['wider_than_precedent', 'exceeds one of the approvals', { rows: [approved('r1'), approved('r2', [plan], {}, SIMILAR)] }],
    ['wider_than_precedent', 'has an action more', { proposal: { answer: allow({ ...work, actions: ['read', 'write'] }) } }],
    [
      'wider_than_request',
      '18: exceeds the ask',
      { request: asking({ capabilities: [plan] }), rows: [approved('r1', [work], {}, SIMILAR)] },
    ],
    [
      'envelope_unsatisfiable',
      '22: leans on approvals for different purposes',
      { rows: [approved('r1', [work], { purposes: ['a'] }), approved('r2', [work], { purposes: ['b'] })] },
    ],
  ])('is %s when it %s', (code, _, situation) => expect(admit(situation)).toEqual({ ok: false, error: code }));

  it('is told the first of its faults, in the order of the rule', () => {
    const faults: Situation[] = [
      { proposal: { matcher: '', citedRequestIds: [], answer: allow() } },
      { proposal: { citedRequestIds: [], answer: allow() } },
      { proposal: { citedRequestIds: ['gone'], answer: allow() } },
      { rows: [refused('r1', { owner: carol })], proposal: { citedRequestIds: ['gone'] } },
      { rows: [refused('r1', { owner: carol })] },
      { rows: [refused('r1'), approved('r2', [plan], {}, { requester: dave })] },
      { rows: [approved('r2', [plan], {}, { requester: dave }), refused('r1')] },
      { request: asking({ capabilities: [plan] }), rows: [approved('r1', [other], {}, SIMILAR)] },
      {
        request: asking({ capabilities: [plan] }),
        rows: [approved('r1', [work], { purposes: ['a'] }, SIMILAR), approved('r2', [work], { purposes: ['b'] }, SIMILAR)],
      },
      { rows: [approved('r1', [work], { purposes: ['a'] }), approved('r2', [work], { purposes: ['b'] })] },
    ];
    expect(faults.map(refusal)).toEqual([
      'auto_decision_unmarked',
      'no_precedent_cited',
      'empty_proposed_capability',
      'precedent_unavailable',
      'precedent_not_this_owner',
      'allow_cites_refusal',
      'precedent_not_this_requester',
      'wider_than_precedent',
      'wider_than_request',
      'envelope_unsatisfiable',
    ]);
  });
});

describe('where the rule leaves room', () => {
  it('an allow is not wider than the ask, even if the same question was once answered wider', () => {
    const wider = [approved('r1', [capability([])])];
    expect(refusal({ rows: wider, proposal: { answer: allow(capability([])) } })).toBe('wider_than_request');
    expect(refusal({ rows: wider })).toBeUndefined();
  });

  it('the same question, once answered narrower, goes to a human again', () => {
    const narrower = [approved('r1', [plan])];
    expect(refusal({ rows: narrower, proposal: { answer: allow(plan) } })).toBe('wider_than_precedent');
    expect(refusal({ rows: [approved('r1', [plan], {}, SIMILAR)], proposal: { answer: allow(plan) } })).toBeUndefined();
  });

  it.each<[string, Partial<CapabilityRequest>]>([
    ['the same question', {}],
    ['a question that is cited', SIMILAR],
  ])('an allow does not lean on what a later refusal of %s overtook', (_, key) => {
    const rows = [approved('r1', [work], {}, SIMILAR)];
    const later = refused('r9', { ...key, decidedAt: at('09:30:00') });
    const newest = key === SIMILAR ? [later] : [...rows, later];
    expect(refusal({ rows, newest })).toBe('allow_cites_refusal');
    expect(refusal({ rows, newest, proposal: { answer: DENY } })).toBeUndefined();
  });

  it('an allow cites the newest answer to each of its questions', () => {
    const rows = [approved('r1')];
    expect(refusal({ rows, newest: [approved('r9', [work], {}, { decidedAt: at('09:30:00') })] })).toBe('precedent_unavailable');
    expect(refusal({ rows, newest: [] })).toBe('precedent_unavailable');
  });

  it('a precedent of the greatest age counts; one a millisecond older is missing', () => {
    expect(refusal({ rows: [approved('r1', [work], {}, { decidedAt: '2025-12-31T10:00:00.000Z' })] })).toBeUndefined();
    expect(refusal({ rows: [approved('r1', [work], {}, { decidedAt: '2025-12-31T09:59:59.999Z' })] })).toBe('precedent_unavailable');
    expect(refusal({ rows: [refused('r1', { decidedAt: 'long ago' })], proposal: { answer: DENY } })).toBe('precedent_unavailable');
  });
});

describe('the key of a question', () => {
  const digest = (changes: Partial<CapabilityRequest> = {}): string => precedentDigest(precedentKeyOf(asking(changes)));

  it.each<[string, Partial<CapabilityRequest>]>([
    ['when it was asked', { requestedAt: at('11:00:00') }],
    ['under which id', { id: 'capreq-other' }],
    ['with which constraints', { constraints: { maxUses: 1 } }],
    ['with which metadata', { metadata: { note: 'x' } }],
    ['whether it says that a resource is the owner’s', { capabilities: [capability(['Work'], { owner: alice })] }],
    ['which action or capability is named first or twice', { capabilities: [work, { ...work, actions: ['read', 'read'] }] }],
  ])('does not count %s', (_, changes) => expect(digest(changes)).toBe(digest()));

  it.each<[string, Partial<CapabilityRequest>]>([
    ['the namespace', { namespaceId: 'w2' }],
    ['the owner', { owner: carol }],
    ['the requester', { requester: dave }],
    ['the purpose', SIMILAR],
    ['a path', { capabilities: [plan] }],
    ['a scope', { capabilities: [{ ...work, scope: 'exact' }] }],
    ['an action', { capabilities: [{ ...work, actions: ['*'] }] }],
    ['an owner that is another’s', { capabilities: [capability(['Work'], { owner: carol })] }],
  ])('counts %s', (_, changes) => expect(digest(changes)).not.toBe(digest()));

  it('is the same whichever capability is named first', () =>
    expect(digest({ capabilities: [work, plan] })).toBe(digest({ capabilities: [plan, work] })));

  it('is this very text, hashed: others compute it too', () =>
    expect(digest()).toBe(
      hashOf({
        version: '1',
        namespaceId: 'w1',
        owner: alice satisfies Address,
        requester: bob,
        purpose: 'p1',
        capabilities: [{ resource: { namespace: 'files', path: ['Work'], owner: alice }, actions: ['read'], scope: 'descendants' }],
      }),
    ));
});

describe('the label of what a precedent decided', () => {
  const recorded = (situation: Situation) => {
    const admitted = admit(situation);
    if (!admitted.ok) throw new Error(admitted.error);
    return escalationAutoDecided({ id: 'a1', at: NOW, context: context() }, admitted.value, 'capreq-now');
  };

  it.each<[string, Situation, object]>([
    [
      'allowed, as narrowed, for a similar question',
      { rows: [approved('r1', [work], {}, SIMILAR)] },
      { outcome: 'allowed', reason: 'auto_allow_narrowed' },
    ],
    ['allowed', {}, { outcome: 'allowed' }],
    ['denied', { proposal: { answer: DENY } }, { outcome: 'denied' }],
  ])('goes on a record that says %s', (_, situation, said) => {
    const record = recorded(situation);
    expect(record).toMatchObject({
      type: 'escalation.auto_decided',
      ...said,
      metadata: { requestId: 'capreq-now', autoDecided: { matcher: 'same-words/3' } },
    });
    expect(record.reason).toBe((said as { reason?: string }).reason);
  });

  it('goes on the grant, where a malformed one is refused', () => {
    const labelled = (autoDecided: unknown) => CapabilityGrant.safeParse({ ...grantOf(), metadata: { autoDecided } }).success;
    expect(labelled({ matcher: 'same-words/3', citedRequestIds: ['r1'], match: 'fuzzy' })).toBe(true);
    for (const wrong of [
      null,
      {},
      { matcher: ' ', citedRequestIds: ['r1'], match: 'exact' },
      { matcher: 'm', citedRequestIds: [], match: 'exact' },
      { matcher: 'm', citedRequestIds: ['r1'], match: 'alike' },
    ])
      expect(labelled(wrong), JSON.stringify(wrong)).toBe(false);
  });
});
