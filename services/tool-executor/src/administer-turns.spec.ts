import { type Address, type AuditEvent, type AuthorityQuestion, err, ok, unavailable } from '@sharedos/contracts';
import { authorizationChecked } from '@sharedos/kernel';
import { memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { cancelTurn } from './cancel-turn.ts';
import { listTurns } from './list-turns.ts';
import type { Ports } from './ports.ts';
import { NOON, REVISION, alice, claimedBy, type context, key } from './turn.fixture.ts';

const root = { kind: 'human', userId: 'root' } as const;
const otherRoot = { kind: 'human', userId: 'other-root' } as const;
const operator = { kind: 'human', userId: 'operator' } as const;

/** An executor that has a turn of Alice, running in a process that nobody can reach, and authorizers that answer as told. */
const executor = async () => {
  const ledger = memoryLedger({ log: memoryRecordLog(), readBackMs: 10 });
  await ledger.claim(key, claimedBy('executor'));
  const records: AuditEvent[] = [];
  const asked: { readonly actor: Address; readonly authority: Address; readonly question: AuthorityQuestion }[] = [];
  const world = {
    records,
    asked,
    /** Of which root a grant lets the operator. */
    grantedBy: undefined as Address | undefined,
    isSilent: false,
    auditWorks: true,
    cancel: (by: Address, requester: Address = alice) =>
      cancelTurn(ports)({ executionId: 'exec-1', requester }, { ...delivery, verb: 'turn.cancel', principal: by }),
    list: (by: Address, requester: Address | 'everyone') =>
      listTurns(ports)({ requester }, { ...delivery, verb: 'turn.list', principal: by }),
  };
  const delivery = { namespaceId: 'w1', rest: [], signal: new AbortController().signal } as const;
  const ports = {
    ledger,
    // Nobody answers on the bus: what gets this far was let through.
    bus: { connected: true, request: async () => unavailable('nobody'), replies: { send: async () => unavailable('nobody') } },
    roots: { w1: [root, otherRoot] },
    authority: {
      open: async () =>
        world.isSilent
          ? err({ code: 'authority_unavailable', reason: 'silence' })
          : ok({
              status: 'resolved',
              token: 't',
              revision: REVISION,
              admittedAt: NOON,
              validUntil: NOON,
              snapshot: { hash: 'a'.repeat(64), grantIds: [], grantCount: 0, loadedAt: NOON },
            }),
      decide: async (_: string, about: typeof context, question: AuthorityQuestion, [id]: readonly string[]) => {
        if (question.kind !== 'authorize') throw new Error('turns are administered by a plain authorization');
        asked.push({ actor: about.actor, authority: about.authority, question });
        const allowed = JSON.stringify(about.authority) === JSON.stringify(world.grantedBy);
        const code = allowed ? 'allowed' : 'no_matching_grant';
        const decided = { decision: { allowed, reasonCode: code } };
        const event = authorizationChecked(
          { id: id as string, at: NOON, context: about },
          { request: question.request, decided, consume: false },
        );
        return ok({ revision: REVISION, status: allowed ? 'allowed' : 'denied', code, audit: [event] });
      },
    },
    audit: async (event: AuditEvent) => {
      if (!world.auditWorks) return unavailable('away');
      records.push(event);
      return ok(undefined);
    },
    clock: () => Date.parse(NOON),
    ids: countingIds('id'),
    instance: 'canceller',
    rules: { toolNamespaces: ['files'], horizonMs: 3_600_000, skewMs: 30_000 },
  } as unknown as Ports;
  return world;
};

const wentOn = { ok: false, error: { code: 'turn_owner_unreachable' } };
const refusedWith = (code: string, retryable = false) => ({ ok: false, error: { code, retryable } });

describe('cancelling the turn of another', () => {
  it('is open to whom a root granted it, whichever root, and the decision is on record first', async () => {
    const world = await executor();
    world.grantedBy = otherRoot;
    expect(await world.cancel(operator)).toMatchObject(wentOn);
    expect(world.asked.at(-1)).toEqual({
      actor: operator,
      authority: otherRoot,
      question: {
        kind: 'authorize',
        request: { resource: { namespace: 'sharedos.admin', path: ['turns'], owner: otherRoot }, action: 'cancel' },
        consume: false,
      },
    });
    expect(world.records.at(-1)).toMatchObject({
      type: 'authorization.checked',
      outcome: 'allowed',
      actor: operator,
      authority: otherRoot,
    });
  });

  it('is open to a root, and on record as its act', async () => {
    const world = await executor();
    expect(await world.cancel(root)).toMatchObject(wentOn);
    expect(world.asked).toEqual([]);
    expect(world.records).toMatchObject([{ type: 'admin.changed', actor: root, action: 'turn.cancel', metadata: { about: 'exec-1' } }]);
  });

  it('is refused to anybody else, and the refusal is on record', async () => {
    const world = await executor();
    world.grantedBy = alice;
    expect(await world.cancel(operator)).toMatchObject(refusedWith('not_an_administrator'));
    expect(world.records.at(-1)).toMatchObject({ type: 'admin.refused', actor: operator, reason: 'not_an_administrator' });
  });

  it('does not happen while nobody can say whether it may, or it cannot be recorded', async () => {
    const world = await executor();
    world.isSilent = true;
    expect(await world.cancel(operator)).toMatchObject(refusedWith('authority_unavailable', true));
    world.isSilent = false;
    world.grantedBy = root;
    world.auditWorks = false;
    expect(await world.cancel(operator)).toMatchObject(refusedWith('audit_unavailable', true));
    expect(await world.cancel(root)).toMatchObject(refusedWith('audit_unavailable', true));
  });

  it('asks nobody about the own turn of whoever names itself', async () => {
    const world = await executor();
    expect(await world.cancel(alice)).toMatchObject(wentOn);
    expect([world.asked, world.records]).toEqual([[], []]);
  });
});

describe('listing the turns of others', () => {
  it.each([alice, 'everyone' as const])('is refused without the right to read them: %o', async (requester) => {
    const world = await executor();
    expect(await world.list(operator, requester)).toMatchObject(refusedWith('not_an_administrator'));
    expect(world.asked.map(({ question }) => question.kind === 'authorize' && question.request.action)).toEqual(['read', 'read']);
  });
  it('is no act of a root: nothing is changed', async () => {
    const world = await executor();
    expect(await world.list(root, 'everyone')).toMatchObject(refusedWith('ledger_unavailable', true));
    expect(world.records).toEqual([]);
  });
});
