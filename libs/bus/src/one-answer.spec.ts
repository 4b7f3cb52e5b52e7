import { describe, expect, it } from 'vitest';
import { PAGE_BYTES_MAX, withinOneAnswer } from './one-answer.ts';

const item = (bytes: number): string => 'x'.repeat(bytes - 2);

describe('a page of one answer', () => {
  it('is all that was found when that fits', () => expect(withinOneAnswer([1, 2, 3])).toEqual([1, 2, 3]));
  it('ends before the item that does not fit', () => {
    const half = item(PAGE_BYTES_MAX / 2);
    expect(withinOneAnswer([half, half])).toHaveLength(2);
    expect(withinOneAnswer([half, half, 'one more'])).toHaveLength(2);
  });
  it('counts bytes on the wire, not letters', () =>
    expect(withinOneAnswer(Array.from({ length: 3 }, () => '€'.repeat(PAGE_BYTES_MAX / 4)))).toHaveLength(1));
  it('holds at least one item, or a reader would never get past it', () =>
    expect(withinOneAnswer([item(PAGE_BYTES_MAX + 1), 1])).toHaveLength(1));
  it('of nothing is nothing', () => expect(withinOneAnswer([])).toEqual([]));
});
