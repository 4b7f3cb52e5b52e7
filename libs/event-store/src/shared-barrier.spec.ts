import { describe, expect, it } from 'vitest';
import { type Result, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import { sharedBarrier } from './shared-barrier.ts';

type Answer = Result<number, Unavailable>;

/** A barrier answered by hand: `sent` counts what was sent, `answer` ends the oldest that is open. */
const byHand = () => {
  const open: PromiseWithResolvers<Answer>[] = [];
  const counted = { sent: 0, openMost: 0 };
  const barrier = sharedBarrier(() => {
    const next = Promise.withResolvers<Answer>();
    open.push(next);
    counted.sent += 1;
    counted.openMost = Math.max(counted.openMost, open.length);
    return next.promise;
  });
  const answer = (value: Answer) => open.shift()?.resolve(value);
  const fail = () => open.shift()?.reject(new Error('broke'));
  const untilSent = async (count: number) => {
    for (let turn = 0; counted.sent < count && turn < 100; turn += 1) await Promise.resolve();
    expect(counted.sent).toBe(count);
  };
  return { barrier, answer, fail, untilSent, counted };
};

const LONG_MS = 5_000;

describe('sharing a barrier', () => {
  it('sends the first at once', async () => {
    const { barrier, answer, counted } = byHand();
    const first = barrier(LONG_MS);
    expect(counted.sent).toBe(1);
    answer(ok(7));
    expect(await first).toEqual(ok(7));
  });

  it('never lets a caller join one already sent', async () => {
    const { barrier, answer, untilSent } = byHand();
    const first = barrier(LONG_MS);
    const second = barrier(LONG_MS);
    answer(ok(7));
    await untilSent(2);
    answer(ok(8));
    expect(await first).toEqual(ok(7));
    expect(await second).toEqual(ok(8));
  });

  it('sends one for all who wait, however many', async () => {
    const { barrier, answer, untilSent, counted } = byHand();
    const first = barrier(LONG_MS);
    const waiting = Array.from({ length: 100 }, () => barrier(LONG_MS));
    answer(ok(1));
    await untilSent(2);
    answer(ok(2));
    await first;
    expect(new Set((await Promise.all(waiting)).map((result) => result.ok && result.value))).toEqual(new Set([2]));
    expect(counted.sent).toBe(2);
  });

  it('keeps one in flight even when callers arrive between two', async () => {
    const { barrier, answer, counted } = byHand();
    const all: Promise<Answer>[] = [barrier(LONG_MS), barrier(LONG_MS)];
    for (let turn = 0; turn < 50; turn += 1) {
      if (turn % 5 === 0) answer(ok(turn));
      all.push(barrier(LONG_MS));
      await Promise.resolve();
    }
    expect(counted.openMost).toBe(1);
    for (let turn = 0; turn < 200; turn += 1) {
      answer(ok(100));
      await Promise.resolve();
    }
    expect((await Promise.all(all)).every((result) => result.ok)).toBe(true);
  });

  it("is unavailable at the caller's own deadline, and does not end it for others", async () => {
    const { barrier, answer } = byHand();
    const patient = barrier(LONG_MS);
    expect(await barrier(5)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    answer(ok(3));
    expect(await patient).toEqual(ok(3));
  });

  it('goes on after one that was unavailable', async () => {
    const { barrier, answer, untilSent } = byHand();
    const first = barrier(LONG_MS);
    const second = barrier(LONG_MS);
    answer(unavailable('stopped'));
    await untilSent(2);
    answer(ok(2));
    expect((await first).ok).toBe(false);
    expect(await second).toEqual(ok(2));
  });

  it('goes on after one that broke', async () => {
    const { barrier, answer, fail, untilSent } = byHand();
    const first = barrier(LONG_MS);
    const second = barrier(LONG_MS);
    fail();
    await expect(first).rejects.toThrow('broke');
    await untilSent(2);
    answer(ok(2));
    expect(await second).toEqual(ok(2));
  });
});
