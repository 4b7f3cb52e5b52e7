import { instantOf, revisionOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { NOON, authorizerWorld, contextAt } from '../authorizer.fixture.ts';
import { type HeldLimits, TurnAuthorities } from './turn-authorities.ts';
import { contextHash } from './turn-token.ts';

/** One grant of one capability, and turns that are opened on it. */
const turnsOn = async (limits: HeldLimits) => {
  const world = await authorizerWorld();
  await world.issue('g');
  const turns = new TurnAuthorities(world.fold, limits);
  const context = contextAt(NOON);
  const revision = revisionOf('log', 1);
  const claims = (turnId: string) => ({ turnId, contextHash: contextHash(context), revision, admittedAt: NOON, validUntil: NOON });
  const open = (turnId: string) => {
    const authority = turns.frozen(revision, 1, instantOf(NOON) ?? NaN, context);
    turns.remember(claims(turnId), authority);
    return authority;
  };
  /** Whether the turn is answered from memory; it is answered with the same grants in either case. */
  const remembers = async (turnId: string, opened: ReturnType<typeof open>): Promise<boolean> => {
    const now = await turns.at(claims(turnId), context, 'log', 100);
    if (!now.ok || !now.value.authority.ok) throw new Error('the turn is not answered');
    expect(now.value.authority.value.held.snapshot.grantIds).toEqual(['g']);
    return now.value === opened;
  };
  return { open, remembers };
};

describe('turns remembered by a replica', () => {
  it('are answered from memory', async () => {
    const { open, remembers } = await turnsOn({ turnsMax: 2, capabilitiesMax: 2 });
    expect(await remembers('t1', open('t1'))).toBe(true);
  });
  it.each<[string, HeldLimits]>([
    ['turns', { turnsMax: 2, capabilitiesMax: 100 }],
    ['capabilities', { turnsMax: 100, capabilitiesMax: 2 }],
  ])('are forgotten, the oldest first, when they are too many %s together, and answered all the same', async (_, limits) => {
    const { open, remembers } = await turnsOn(limits);
    const [first, second, third] = [open('t1'), open('t2'), open('t3')];
    expect([await remembers('t3', third), await remembers('t2', second), await remembers('t1', first)]).toEqual([true, true, false]);
  });
  it('count once however often they are opened', async () => {
    const { open, remembers } = await turnsOn({ turnsMax: 2, capabilitiesMax: 2 });
    const first = open('t1');
    open('t2');
    const again = open('t2');
    expect([await remembers('t1', first), await remembers('t2', again)]).toEqual([true, true]);
  });
});
