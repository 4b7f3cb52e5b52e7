import { z } from 'zod';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObj = { readonly [key: string]: Json };

/** Nesting deeper than this is refused everywhere (design decision; the contracts set no limit). */
export const JSON_DEPTH_MAX = 64;

/**
 * Why `value` is not plain JSON, or `undefined` when it is. Walks with its own stack, so a hostile depth cannot overflow ours.
 *
 * Refused at any depth: absent values and array holes, numbers that are not finite, non-plain objects, and a key spelled
 * `__proto__` (the reference drops such a key; dropping would let a checked value differ from the used one).
 *
 * @see spec/contracts.md §0, "JSON safety"
 */
export const jsonViolation = (value: unknown): string | undefined => {
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    const { value: current, depth } = item;
    if (current === null || typeof current === 'string' || typeof current === 'boolean') continue;
    if (typeof current === 'number') {
      if (!Number.isFinite(current)) return 'a number must be finite';
      continue;
    }
    if (typeof current !== 'object') return `a ${typeof current} is not JSON`;
    if (depth >= JSON_DEPTH_MAX) return `nested deeper than ${JSON_DEPTH_MAX} levels`;
    if (Array.isArray(current)) {
      for (let index = 0; index < current.length; index += 1) pending.push({ value: current[index], depth: depth + 1 });
      continue;
    }
    const prototype: unknown = Object.getPrototypeOf(current);
    if (prototype !== Object.prototype && prototype !== null) return 'only plain objects are JSON';
    for (const key of Object.keys(current)) {
      if (key === '__proto__') return 'a key may not be __proto__';
      pending.push({ value: (current as Record<string, unknown>)[key], depth: depth + 1 });
    }
  }
  return undefined;
};

/** No later rule of the same schema runs after this one: such a rule may rely on having plain JSON before it. */
const explained = (context: z.RefinementCtx<unknown>, message: string | undefined): void => {
  if (message !== undefined) context.addIssue({ code: 'custom', message, continue: false });
};

/** Any JSON value. */
export const Json = z.unknown().superRefine((value, context) => explained(context, jsonViolation(value))) as unknown as z.ZodType<Json>;

/** A JSON object; the bags `metadata`, `details`, `state` and `arguments`. */
export const JsonObj = z
  .unknown()
  .superRefine((value, context) => {
    const plain = typeof value === 'object' && value !== null && !Array.isArray(value);
    explained(context, plain ? jsonViolation(value) : 'must be a JSON object');
  })
  .meta({ type: 'object' }) as unknown as z.ZodType<JsonObj>;
