import { type Address, type RecordsReplay, ok } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { auditor, carol, projector, record } from './reading.fixture.ts';
import { NOON, fold, sealKeys } from './record.fixture.ts';

describe('a replay of audit records', () => {
  const page = async (world: ReturnType<typeof projector>, body: RecordsReplay, principal: Address = auditor) => {
    const reply = await world.replay(body, principal);
    if (!reply.ok) throw new Error(reply.error.code);
    return reply.value;
  };

  it('hands out every record after a place with its link, and says where to go on', async () => {
    const world = projector();
    fold(world.records, record('a'), record('theirs', 'w2'), record('b'), record('c'));
    const first = await page(world, { after: 0, limit: 2 });
    expect(first.records.map(({ event, count }) => [event.id, count])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    expect(first.after).toBe(3);
    const second = await page(world, { after: first.after, session: first.session });
    expect(second.records.map(({ chain }) => chain)).toEqual([world.records.tips()[0]?.chain]);
  });

  it('has the signed heads of what it hands out', async () => {
    const world = projector();
    fold(world.records, record('a'), record('b'));
    const sealed = sealKeys().seal({ version: '1', namespaceId: 'w1', count: 1, sequence: 1, chain: 'ab'.repeat(32), at: NOON });
    world.records.keepHead(sealed, 1);
    expect(await page(world, { after: 0, limit: 1 })).toMatchObject({ heads: [sealed], headsAfter: 1 });
    expect((await page(world, { after: 1, headsAfter: 1 })).heads).toEqual([]);
    // One that was signed after its record had been handed out is handed out still.
    world.records.keepHead(sealed, 9);
    expect(await page(world, { after: 2, headsAfter: 1 })).toMatchObject({ records: [], heads: [sealed], headsAfter: 9 });
  });

  it('waits for something new, and answers with nothing when its time is over', async () => {
    const world = projector();
    let waits = 0;
    world.folded = async () => {
      waits += 1;
      if (waits === 2) fold(world.records, record('new'));
      return true;
    };
    expect((await page(world, { after: 0, waitMs: 20_000 })).records).toHaveLength(1);
    expect(waits).toBe(2);
    expect(await page(world, { after: 7 })).toMatchObject({ records: [], after: 7 });
  });

  it('is decided once a session and not for each page, for its own records would wake it', async () => {
    const world = projector();
    const { session } = await page(world, { after: 0 });
    await page(world, { after: 0, session });
    expect(world.asked).toHaveLength(1);
    world.clock.advance(30_000);
    const again = await page(world, { after: 0, session });
    expect(world.asked).toHaveLength(2);
    expect(again.session).not.toBe(session);
  });

  it('takes no session of another reader, of another authority, or made up', async () => {
    const world = projector();
    const { session } = await page(world, { after: 0 });
    world.says = 'denied';
    expect(await world.replay({ after: 0, session }, carol)).toMatchObject({ ok: false, error: { code: 'no_matching_grant' } });
    expect(await world.replay({ after: 0, session, authority: carol })).toMatchObject({ ok: false, error: { code: 'no_matching_grant' } });
    expect(await world.replay({ after: 0, session: 'eyJ1bnRpbCI6MX0.AAAA' })).toMatchObject({
      ok: false,
      error: { code: 'no_matching_grant' },
    });
    expect(await world.replay({ after: 0, session })).toMatchObject({ ok: true });
  });

  it('is unavailable while the stream is silent', async () => {
    const world = projector();
    world.behind = 'the stream of records is silent';
    expect(await world.replay({ after: 0 })).toMatchObject({ ok: false, error: { code: 'records_unavailable', retryable: true } });
  });

  it('is unavailable while the read model is being built, and says how far it is: its end would be no end', async () => {
    const world = projector();
    fold(world.records, record('a'));
    world.head = () => Promise.resolve(ok(4));
    world.building = 'the read model is being built: 1 of 4 records, 25 %';
    expect(await world.replay({ after: 0 })).toMatchObject({
      ok: false,
      error: { code: 'records_unavailable', message: expect.stringContaining('1 of 4 records, 25 %'), retryable: true },
    });
    world.folded = async () => (fold(world.records, record('b'), record('c'), record('d')), true);
    expect((await page(world, { after: 0 })).records).toHaveLength(4);
  });
});
