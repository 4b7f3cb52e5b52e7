import type { z } from 'zod';

/**
 * A text or list of `min` to `max` UTF-16 units or entries, judged only once it is known to be one.
 *
 * The library's own bounds are not enough: they count a text in code points, so that a bound of 256 let 512 units pass, and they
 * measure whatever has a `length`, so that a sender could make parsing throw with `{"length": {"valueOf": null}}` where a text
 * belongs.
 */
export const bounded = <Schema extends z.core.$ZodType<string | readonly unknown[]>>(
  schema: Schema,
  min: number,
  max: number = Infinity,
): Schema => {
  const within = (schema as unknown as z.ZodType<{ readonly length: number }>).refine(
    ({ length }) => length >= min && length <= max,
    max === Infinity ? `must have a length of at least ${min}` : `must have a length of ${min} to ${max}`,
  );
  const [least, most] = schema._zod.def.type === 'array' ? ['minItems', 'maxItems'] : ['minLength', 'maxLength'];
  return within.meta({
    ...(min === 0 ? {} : { [least as string]: min }),
    ...(max === Infinity ? {} : { [most as string]: max }),
  }) as unknown as Schema;
};
