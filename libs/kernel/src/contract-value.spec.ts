import { Json } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { contractValue } from './contract-value.ts';

const Point = z.strictObject({ x: z.number(), more: Json.optional() });
const made = <T>(schema: z.ZodType<T>, value: unknown): T => {
  const result = contractValue(schema, value);
  if (!result.ok) throw new Error(result.error);
  return result.value;
};

describe('a value of a contract', () => {
  it('is a frozen copy: whoever gave it changes nothing by changing what he holds', () => {
    const given = { x: 1, more: { deep: [1] } };
    const point = made(Point, given);
    given.x = 2;
    given.more.deep.push(2);
    expect(point).toEqual({ x: 1, more: { deep: [1] } });
    expect(() => Object.assign(point, { x: 3 })).toThrow(TypeError);
    expect(() => (point.more as { deep: number[] }).deep.push(3)).toThrow(TypeError);
  });

  it('is read once, so that it cannot say one thing to the contract and another to us', () => {
    let reads = 0;
    const point = made(Point, {
      get x() {
        return (reads += 1);
      },
    });
    expect([point, reads]).toEqual([{ x: 1 }, 1]);
  });

  it('is given back as it is for the contract it was made of, and judged again for another', () => {
    const point = made(Point, { x: 1 });
    expect(made(Point, point)).toBe(point);
    expect(contractValue(z.strictObject({ y: z.number() }), point).ok).toBe(false);
    const alike = made(z.strictObject({ x: z.number() }), point);
    expect(alike).toEqual(point);
    expect(alike).not.toBe(point);
  });

  it('is made of no copy, frozen or not, that was not made here', () => {
    expect(contractValue(Point, Object.freeze({ x: 'one' })).ok).toBe(false);
    expect(contractValue(Point, new Proxy(made(Point, { x: 1 }), { get: () => 'one' })).ok).toBe(false);
  });
});
