import { describe, expect, it } from 'vitest';
import { SharedWork } from './shared-work.ts';

/** Work that ends when told to, and knows how often it began and whether it was stopped. */
const controlled = () => {
  const begun: { readonly signal: AbortSignal; readonly end: (value: string) => void; readonly fail: () => void }[] = [];
  const start = (signal: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => begun.push({ signal, end: resolve, fail: () => reject(new Error('fell')) }));
  return { begun, start };
};

describe('work that many wait for', () => {
  it('is done once, and its value is held', async () => {
    const { begun, start } = controlled();
    const work = new SharedWork<string>();
    const waiting = [work.get(start, undefined), work.get(start, undefined)];
    begun[0]?.end('done');
    expect(await Promise.all(waiting)).toEqual(['done', 'done']);
    expect([await work.get(start, undefined), begun.length]).toEqual(['done', 1]);
  });
  it('goes on for the others when one gives up', async () => {
    const { begun, start } = controlled();
    const work = new SharedWork<string>();
    const cancel = new AbortController();
    const given = work.get(start, cancel.signal);
    const other = work.get(start, undefined);
    cancel.abort(new Error('gave up'));
    await expect(given).rejects.toThrow('gave up');
    expect(begun[0]?.signal.aborted).toBe(false);
    begun[0]?.end('done');
    expect(await other).toBe('done');
    expect(begun).toHaveLength(1);
  });
  it('is stopped when nobody waits any more, and begun anew by the next', async () => {
    const { begun, start } = controlled();
    const work = new SharedWork<string>();
    const cancel = new AbortController();
    const given = work.get(start, cancel.signal);
    cancel.abort(new Error('gave up'));
    await expect(given).rejects.toThrow('gave up');
    expect(begun[0]?.signal.aborted).toBe(true);
    const next = work.get(start, undefined);
    begun[0]?.end('stale');
    begun[1]?.end('fresh');
    expect(await next).toBe('fresh');
  });
  it('that fails fails for all who wait, and is not held', async () => {
    const { begun, start } = controlled();
    const work = new SharedWork<string>();
    const waiting = [work.get(start, undefined), work.get(start, undefined)];
    begun[0]?.fail();
    for (const one of waiting) await expect(one).rejects.toThrow('fell');
    const next = work.get(start, undefined);
    begun[1]?.end('done');
    expect(await next).toBe('done');
  });
  it('is not begun for somebody who has given up already', async () => {
    const { begun, start } = controlled();
    await expect(new SharedWork<string>().get(start, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
    expect(begun).toEqual([]);
  });
});
