import type { Address, Capability, CapabilityConstraints, CapabilityGrant, EscalationItem } from '@sharedos/contracts';
import { memoryEventStore } from '@sharedos/event-store';
import { escalationGrantId } from '@sharedos/kernel';
import { manualClock } from '@sharedos/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { NAMESPACE, NOON, alice, bob, carol, reading, settled, toRead } from '../authorizer.fixture.ts';
import { issueGrant } from '../changes/issue-grant.ts';
import { recomputed } from '../recompute/lived-through.fixture.ts';
import { OPEN_QUESTIONS_MAX } from './open-escalation.ts';
import { type AskedWorld, aboutCall, approve, askedWorld, named, question } from './escalations.fixture.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const dave: Address = { kind: 'human', userId: 'dave' };
const refused = (code: string) => ({ ok: false, error: { code } });
const answered = (status: EscalationItem['status']) => ({ ok: true, value: { escalation: { status } } });

let open: AskedWorld[] = [];
afterEach(async () => {
  await Promise.all(open.map((replica) => replica.close()));
  open = [];
});
/** Replicas over one log and one clock. */
const replicas = async <const Count extends 1 | 2>(count: Count): Promise<{ 1: [AskedWorld]; 2: [AskedWorld, AskedWorld] }[Count]> => {
  const shared = { store: memoryEventStore({ storeId: 'log' }), clock: manualClock(NOON) };
  open = await Promise.all(Array.from({ length: count }, () => askedWorld(shared)));
  return open as { 1: [AskedWorld]; 2: [AskedWorld, AskedWorld] }[Count];
};
const grantIn = ({ world }: AskedWorld, of = named): CapabilityGrant | undefined =>
  world.fold.index.grantAt(NAMESPACE, escalationGrantId(NAMESPACE, of), Infinity, Infinity)?.grant;
const acts = ({ world }: AskedWorld): readonly string[] =>
  world.records.filter(({ type }) => type === 'admin.changed').map(({ action }) => action ?? '');

/** This replica ends where it would write the answer, its grant already issued. */
const diesBeforeAnswer = (replica: AskedWorld): void => {
  replica.onAppend = async ({ category }) => {
    if (category === 'escalation') throw new Error('killed');
  };
};

describe('an approval', () => {
  it('issues a grant that follows from the question, and then answers it', async () => {
    const [replica] = await replicas(1);
    await replica.open(named);
    expect(await replica.resolve(approve)).toMatchObject(answered('approved'));
    await settled();
    expect(grantIn(replica)).toMatchObject({ subject: bob, issuer: alice, constraints: { maxUses: 1, purposes: ['p1'] } });
    expect(acts(replica)).toEqual(['grant.issue', 'escalation.resolve']);
    expect(replica.told).toEqual(['opened ask-1', 'approved ask-1']);
  });

  it('gives what its reviewer narrows it to, and nothing wider', async () => {
    const [replica] = await replicas(1);
    await replica.open(named);
    expect(await replica.resolve({ answer: 'approve', capabilities: [reading('Work')] })).toMatchObject(refused('wider_than_request'));
    const plan = { ...reading('Work', 'Plan'), scope: 'exact' as const };
    expect(await replica.resolve({ answer: 'approve', capabilities: [plan] })).toMatchObject(answered('narrowed'));
    await settled();
    expect(grantIn(replica)?.capabilities).toMatchObject([{ scope: 'exact' }]);
  });

  it('that is sent again gets its first answer, and another one is refused', async () => {
    const [replica] = await replicas(1);
    await replica.open(named);
    const first = await replica.resolve(approve, { commandId: 'once' });
    await settled();
    expect(await replica.resolve(approve, { commandId: 'once' })).toEqual(first);
    expect(await replica.resolve(approve)).toMatchObject(refused('escalation_answered'));
    expect(await replica.resolve({ answer: 'refuse' })).toMatchObject(refused('escalation_answered'));
  });

  it('on two replicas at once is one grant, and one of the two hears that it was answered', async () => {
    const [one, other] = await replicas(2);
    await one.open(named);
    await settled();
    const both = await Promise.all([
      one.resolve(approve, { commandId: 'mine' }),
      other.resolve(approve, { commandId: 'yours', by: alice }),
    ]);
    expect(both.filter(({ ok }) => ok)).toMatchObject([answered('approved')]);
    expect(both.filter(({ ok }) => !ok)).toMatchObject([refused('escalation_answered')]);
    await settled();
    expect(one.world.fold.index.size).toBe(1);
  });

  it('of one command on two replicas at once is answered twice alike', async () => {
    const [one, other] = await replicas(2);
    await one.open(named);
    await settled();
    const both = await Promise.all([one.resolve(approve, { commandId: 'once' }), other.resolve(approve, { commandId: 'once' })]);
    expect(both[1]).toEqual(both[0]);
    expect(both[0]).toMatchObject(answered('approved'));
  });
});

describe('an approval whose replica ended between its grant and its answer', () => {
  const halfDone = async () => {
    const [dead, other] = await replicas(2);
    await dead.open(named);
    diesBeforeAnswer(dead);
    await expect(dead.resolve(approve, { commandId: 'begun' })).rejects.toThrow('killed');
    await settled();
    expect(grantIn(other)).toBeDefined();
    expect(await other.show()).toMatchObject(answered('open'));
    return other;
  };

  it('is finished by any other, once, as the command that began it', async () => {
    const other = await halfDone();
    const keeping = other.keep();
    await keeping.sweep();
    await settled();
    await keeping.sweep();
    expect(await other.show()).toMatchObject({ ok: true, value: { escalation: { status: 'approved', grant: grantIn(other) } } });
    // Told and recorded at least once, and each time the same.
    expect(new Set(other.told)).toEqual(new Set(['approved ask-1']));
    expect(new Set(acts(other))).toEqual(new Set(['escalation.resolve']));
    expect(await other.resolve(approve, { commandId: 'begun' })).toMatchObject(answered('approved'));
    expect(other.world.fold.index.size).toBe(1);
  });

  it('is finished by the same command sent again', async () => {
    const other = await halfDone();
    expect(await other.resolve(approve, { commandId: 'begun' })).toMatchObject(answered('approved'));
  });

  it.each([approve, { answer: 'refuse' } as const])(
    'is finished by another answer, which hears that it was answered: %j',
    async (resolution) => {
      const other = await halfDone();
      expect(await other.resolve(resolution)).toMatchObject(refused('escalation_answered'));
      expect(await other.show()).toMatchObject(answered('approved'));
    },
  );
});

describe('an approval that a refusal is ahead of', () => {
  /** A refusal that was decided before the grant of an approval, and written after it. */
  const overtaking = async () => {
    const [slow, quick] = await replicas(2);
    await slow.open(named);
    await settled();
    const gate = Promise.withResolvers<void>();
    quick.onAppend = () => gate.promise;
    const refusing = quick.resolve({ answer: 'refuse' });
    await settled();
    slow.onAppend = async ({ category }) => {
      if (category !== 'escalation') return;
      gate.resolve();
      await refusing;
    };
    return { slow, quick, refusing };
  };

  it('takes its grant back', async () => {
    const { slow, refusing } = await overtaking();
    expect(await slow.resolve(approve)).toMatchObject(refused('escalation_answered'));
    expect(await refusing).toMatchObject(answered('refused'));
    await settled();
    expect(grantIn(slow)).toMatchObject({ revokedAt: NOON });
  });

  it('has its grant taken back by any other replica, when its own ends before it can', async () => {
    const { slow, quick } = await overtaking();
    const { onAppend } = slow;
    slow.onAppend = async (stream) => {
      await onAppend(stream);
      if (stream.category === 'escalation')
        slow.onAppend = async () => {
          throw new Error('killed');
        };
    };
    await expect(slow.resolve(approve)).rejects.toThrow('killed');
    await settled();
    expect(grantIn(quick)?.revokedAt).toBeUndefined();
    await quick.keep().sweep();
    await settled();
    expect(grantIn(quick)).toMatchObject({ revokedAt: NOON });
    expect(quick.told).toEqual(['refused ask-1']);
  });
});

describe('a question that nobody answered', () => {
  it('is recorded as expired once its time is over, and told', async () => {
    const [replica] = await replicas(1);
    await replica.open({ ...named, expiresAt: '2026-01-01T13:00:00.000Z' });
    await settled();
    const keeping = replica.keep();
    replica.world.clock.advance(3_599_999);
    await keeping.sweep();
    expect(await replica.show()).toMatchObject(answered('open'));
    replica.world.clock.advance(1);
    await keeping.sweep();
    await keeping.sweep();
    expect(replica.told).toEqual(['opened ask-1', 'expired ask-1']);
    expect(await replica.resolve(approve)).toMatchObject(refused('escalation_answered'));
  });

  it('may be answered for a week, unless it says otherwise', async () => {
    const [replica] = await replicas(1);
    await replica.open(named);
    await settled();
    expect(await replica.show()).toMatchObject({
      ok: true,
      value: { escalation: { question: { expiresAt: '2026-01-08T12:00:00.000Z' } } },
    });
  });
});

describe('whoever asks', () => {
  it('has so many questions open and no more, and may repeat those', async () => {
    const [replica] = await replicas(1);
    for (let number = 0; number < OPEN_QUESTIONS_MAX; number += 1) await replica.open({ ...question, id: `ask-${number}` });
    await settled();
    expect(await replica.open({ ...question, id: 'one-more' })).toMatchObject(refused('too_many_questions'));
    expect(await replica.open({ ...question, id: 'ask-7', executionId: 'again' })).toMatchObject({ ok: true });
    expect(await replica.open({ ...question, id: 'of-carol', requester: carol })).toMatchObject({ ok: true });
    await replica.resolve({ answer: 'refuse' }, { escalationId: 'ask-7' });
    await settled();
    expect(await replica.open({ ...question, id: 'one-more' })).toMatchObject({ ok: true });
  });
});

describe('whom a question is there for', () => {
  it('is its parties alone, and nobody else can answer it', async () => {
    const [replica] = await replicas(1);
    await replica.open(named);
    await settled();
    for (const party of [alice, bob]) expect(await replica.list(party)).toMatchObject({ ok: true, value: { escalations: [{}] } });
    expect(await replica.list(carol)).toMatchObject({ ok: true, value: { escalations: [] } });
    expect(await replica.show(carol)).toMatchObject(refused('escalation_not_found'));
    expect(await replica.resolve(approve, { by: carol })).toMatchObject(refused('escalation_not_found'));
    expect(await replica.resolve(approve, { by: bob })).toMatchObject(refused('not_the_reviewer'));
    expect(await replica.resolve({ answer: 'withdraw' }, { by: alice })).toMatchObject(refused('not_the_requester'));
    expect(await replica.resolve({ answer: 'withdraw' }, { by: bob })).toMatchObject(answered('withdrawn'));
  });
});

describe('a grant for one call', () => {
  const decide = async ({ world }: AskedWorld, callDigest: string | undefined, operation: string) => {
    const opened = await world.opened();
    const exact = toRead('Work', 'Plan');
    const asked = { kind: 'tool', ceiling: toRead(), exact: { requirement: exact }, operation, operationId: operation } as const;
    return { opened, verdict: await world.verdict(opened.token, callDigest === undefined ? asked : { ...asked, callDigest }) };
  };

  it('allows the call that was approved, once, and no other', async () => {
    const [replica] = await replicas(1);
    await replica.open(aboutCall(A));
    expect(await replica.resolve({ ...approve, usesMax: 2 } as never)).toMatchObject(refused('bound_to_one_call'));
    expect(await replica.resolve(approve)).toMatchObject(answered('approved'));
    await settled();
    const { opened, verdict } = await decide(replica, B, 'other');
    expect(opened).toMatchObject({ boundCalls: true });
    expect(verdict).toMatchObject({ status: 'denied', code: 'no_matching_grant' });
    expect((await decide(replica, undefined, 'unsaid')).verdict).toMatchObject({ code: 'no_matching_grant' });
    expect((await decide(replica, A, 'first')).verdict).toMatchObject({ status: 'allowed', use: { ordinal: 1 } });
    expect((await decide(replica, A, 'second')).verdict).toMatchObject({ code: 'tool_unavailable', cause: 'grant_exhausted' });
  });

  it('is decided upon as recorded, when the decision is computed again without the arguments', async () => {
    const [replica] = await replicas(1);
    const { world } = replica;
    await replica.open(aboutCall(A));
    await replica.resolve(approve);
    await settled();
    const verdicts = [await decide(replica, B, 'other'), await decide(replica, A, 'first'), await decide(replica, A, 'second')];
    const records = verdicts.flatMap(({ verdict }) => verdict.audit);
    expect(records.map(({ outcome, reason }) => reason ?? outcome)).toEqual(['no_matching_grant', 'allowed', 'grant_exhausted']);
    expect(await recomputed(world, records)).toMatchObject([{ status: 'same' }, { status: 'same' }, { status: 'same' }]);
    expect(JSON.stringify(records)).not.toContain(A);
  });

  it('costs nothing where nobody holds one', async () => {
    const [replica] = await replicas(1);
    await replica.world.issue('unbound');
    await settled();
    expect(await replica.world.opened()).not.toHaveProperty('boundCalls');
  });
});

describe('a registered reviewer', () => {
  /** Alice lets dave answer in her place. */
  const registered = async (constraints: CapabilityConstraints = {}, path = ['escalation']) => {
    const [replica] = await replicas(1);
    const { world } = replica;
    const capability: Capability = { resource: { namespace: 'sharedos', path }, actions: ['review'], scope: 'descendants' };
    const grant = { id: 'reviewer', subject: dave, capabilities: [capability], constraints };
    expect(await issueGrant(world.ports)({ commandId: 'register', grant }, world.delivery('grant.issue', alice))).toMatchObject({
      ok: true,
    });
    await replica.open(named);
    await settled();
    return replica;
  };

  it('sees the questions of the owner, and answers them in its place', async () => {
    const replica = await registered();
    expect(await replica.list(dave)).toMatchObject({ ok: true, value: { escalations: [{ question: { id: 'ask-1' } }] } });
    expect(await replica.show(dave)).toMatchObject(answered('open'));
    expect(await replica.resolve(approve, { by: dave })).toMatchObject(answered('approved'));
    await settled();
    expect(grantIn(replica)).toMatchObject({ issuer: alice, metadata: { approvedBy: dave } });
  });

  it.each<[string, CapabilityConstraints, string[]]>([
    ['for another purpose', { purposes: ['p2'] }, ['escalation']],
    ['of another agent', {}, ['escalation', 'agent', 'carol']],
    ['any more', { expiresAt: NOON }, ['escalation']],
    ['by a bounded grant', { maxUses: 5 }, ['escalation']],
  ])('answers none %s', async (_, constraints, path) => {
    const replica = await registered(constraints, path);
    expect(await replica.resolve(approve, { by: dave })).toMatchObject(refused('escalation_not_found'));
    expect(await replica.list(dave)).toMatchObject({ ok: true, value: { escalations: [] } });
  });

  it('answers those of one agent, where its grant says so', async () => {
    const replica = await registered({ purposes: ['p1'] }, ['escalation', 'agent', 'bob']);
    expect(await replica.resolve({ answer: 'refuse' }, { by: dave })).toMatchObject(answered('refused'));
  });

  it('is nobody any more once its grant is revoked', async () => {
    const replica = await registered();
    await replica.world.revoke('reviewer');
    expect(await replica.resolve(approve, { by: dave })).toMatchObject(refused('escalation_not_found'));
  });

  it('gives nothing to a question that names nothing', async () => {
    const replica = await registered();
    await replica.open({ ...question, id: 'vague' });
    await settled();
    const all = { answer: 'approve', capabilities: [reading()] } as const;
    expect(await replica.resolve({ ...all, capabilities: [...all.capabilities] }, { by: dave, escalationId: 'vague' })).toMatchObject(
      refused('wider_than_request'),
    );
  });

  it('is none by a grant of somebody who does not own what is asked for', async () => {
    const replica = await registered();
    await replica.open({ ...question, id: 'other', owner: carol, authority: carol, reviewer: carol });
    await settled();
    expect(await replica.resolve({ answer: 'refuse' }, { by: dave, escalationId: 'other' })).toMatchObject(refused('escalation_not_found'));
  });
});
