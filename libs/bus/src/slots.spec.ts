import { describe, expect, it } from 'vitest';
import { Slots } from './slots.ts';

describe('bounded concurrency', () => {
  const slots = (): Slots => new Slots({ concurrencyMax: 1, waitingMax: 2, waitMs: 5_000 });

  it('lets in as many as it may and makes the next wait', async () => {
    const bounded = slots();
    expect(bounded.enter()).toBe(true);
    const next = bounded.enter();
    expect(next).toBeInstanceOf(Promise);
    bounded.leave();
    expect(await next).toBe(true);
  });

  it('turns away whoever would be one waiting too many', () => {
    const bounded = slots();
    expect([bounded.enter(), bounded.enter(), bounded.enter(), bounded.enter()].map((entered) => typeof entered)).toEqual([
      'boolean',
      'object',
      'object',
      'boolean',
    ]);
    expect(bounded.enter()).toBe(false);
    bounded.leave();
    bounded.leave();
    bounded.leave();
    expect(bounded.taken).toBe(0);
  });

  it('hands a slot to the one who waited longest, and never to two', async () => {
    const bounded = slots();
    expect(bounded.enter()).toBe(true);
    const order: string[] = [];
    const first = Promise.resolve(bounded.enter()).then(() => order.push('first'));
    const second = Promise.resolve(bounded.enter()).then(() => order.push('second'));
    bounded.leave();
    await first;
    expect([order, bounded.taken]).toEqual([['first'], 1]);
    expect(bounded.enter()).toBeInstanceOf(Promise);
    bounded.leave();
    await second;
    expect(order).toEqual(['first', 'second']);
    bounded.leave();
    bounded.leave();
    expect(bounded.taken).toBe(0);
  });
});
