import type { Revision } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { alice, authorizerWorld, bob, carol, settled } from '../authorizer.fixture.ts';
import { watchGrants } from './watch-grants.ts';

const at = (position: number): Revision => `log@${position}` as Revision;
const LONG = 20_000;

const watched = async () => {
  const world = await authorizerWorld({ deadlineMs: 5_000 });
  await world.issue('first');
  const watch = watchGrants(world.ports);
  const ask = async (after: number, waitMs: number, principal = alice as Parameters<typeof world.delivery>[1], limit = 10) => {
    const answer = await watch({ after: at(after), waitMs, limit }, world.delivery('grant.watch', principal));
    return answer.ok ? [answer.value.grants.map(({ id }) => id), answer.value.revision] : answer.error.code;
  };
  return { world, ask };
};

describe('watching grants', () => {
  it('is answered at once with what happened already', async () => {
    const { world, ask } = await watched();
    await world.issue('second');
    await world.revoke('first');
    expect(await ask(0, LONG)).toEqual([['first', 'second'], 'log@3']);
    expect(await ask(1, LONG)).toEqual([['second', 'first'], 'log@3']);
    expect(await ask(0, LONG, alice, 1)).toEqual([['first'], 'log@1']);
  });

  it.each([
    ['its issuer', alice],
    ['its holder', bob],
  ])('is answered once a grant is issued, for %s', async (_, principal) => {
    const { world, ask } = await watched();
    const answer = ask(1, LONG, principal);
    await settled();
    await world.issue('second');
    expect(await answer).toEqual([['second'], 'log@2']);
  });

  it('is answered once a grant is revoked', async () => {
    const { world, ask } = await watched();
    const answer = ask(1, LONG);
    await settled();
    await world.revoke('first');
    expect(await answer).toEqual([['first'], 'log@2']);
  });

  it('hears nothing of others, and goes on after what it was not told of', async () => {
    const { world, ask } = await watched();
    const answer = ask(1, 50, carol);
    await world.issue('second');
    expect(await answer).toEqual([[], 'log@2']);
  });

  it('waits no longer than it may', async () => {
    const { ask } = await watched();
    expect(await ask(1, 0)).toEqual([[], 'log@1']);
    expect(await ask(1, 20)).toEqual([[], 'log@1']);
  });

  it('does not wait where too many wait for the same principal', async () => {
    const { world, ask } = await watched();
    const waiting = Array.from({ length: 4 }, () => ask(1, LONG));
    await settled();
    expect(await ask(1, LONG)).toEqual([[], 'log@1']);
    await world.issue('second');
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 4 }, () => [['second'], 'log@2']));
  });

  it('ends when the replica does', async () => {
    const { world, ask } = await watched();
    const answer = ask(1, LONG);
    await settled();
    await world.close();
    expect(await Promise.race([answer, settled().then(() => 'still waiting')])).toBeDefined();
  });

  it('of another log is refused', async () => {
    const { world } = await watched();
    const watch = watchGrants(world.ports);
    const asked = { after: 'other@1' as Revision };
    expect(await watch(asked, world.delivery('grant.watch', alice))).toMatchObject({ ok: false, error: { code: 'invalid_request' } });
  });
});
