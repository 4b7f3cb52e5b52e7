import { JSON_DEPTH_MAX, type Result, describeIssues, err, ok } from '@sharedos/contracts';
import type { z } from 'zod';

/** Values in one object, counted: an object that refers to itself twice would otherwise grow without end while it is copied. */
const VALUES_MAX = 1_000_000;
/** A contract wraps its JSON bags in a few levels of its own; the schema then holds each bag to the exact depth. */
const DEPTH_MAX = JSON_DEPTH_MAX + 8;

class NotPlain extends Error {}

/** What was made here, and of which schema: frozen through, it can have become nothing else since. */
const made = new WeakMap<object, z.core.$ZodType>();

/**
 * Parses a value that a plugin or a caller still holds, into a copy that nobody else holds and nobody can change.
 *
 * The copy is taken before the check and each member is read once, so what was checked is what is used: a getter or a proxy
 * cannot answer the schema with one thing and the kernel with another. What this made before of the same schema is given back as it is.
 */
export const contractValue = <Schema extends z.core.$ZodType>(schema: Schema, value: unknown): Result<z.output<Schema>, string> => {
  if (typeof value === 'object' && value !== null && made.get(value) === schema) return ok(value as z.output<Schema>);
  let copy: unknown;
  try {
    copy = copyOf(value);
  } catch (error) {
    return err(error instanceof NotPlain ? error.message : 'it could not be read');
  }
  const parsed = (schema as unknown as z.ZodType<z.output<Schema>>).safeParse(copy);
  if (!parsed.success) return err(describeIssues(parsed.error));
  const own = sealed(parsed.data);
  if (typeof own === 'object' && own !== null) made.set(own, schema);
  return ok(own);
};

/** A deep copy without the members that are `undefined`, frozen through. @throws on what is not plain data. */
export const frozenCopy = <T>(value: T): T => sealed(copyOf(value)) as T;

/** Freezes plain data that we own, through; a member that is `undefined` is removed, for it has no place in JSON. */
export const sealed = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    if (members[key] === undefined && !Array.isArray(value)) delete members[key];
    else sealed(members[key]);
  }
  return Object.freeze(value);
};

const copyOf = (value: unknown): unknown => {
  let count = 0;
  const copied = (current: unknown, depth: number): unknown => {
    count += 1;
    if (count > VALUES_MAX) throw new NotPlain(`it holds more than ${VALUES_MAX} values`);
    if (typeof current !== 'object' || current === null) return current;
    if (depth >= DEPTH_MAX) throw new NotPlain(`nested deeper than ${JSON_DEPTH_MAX} levels`);
    if (Array.isArray(current)) {
      const length = current.length;
      if (length > VALUES_MAX) throw new NotPlain(`it holds more than ${VALUES_MAX} values`);
      // By index and not by iterator: a hole must arrive as the `undefined` that the schema refuses.
      return Array.from({ length }, (_, index) => copied(current[index], depth + 1));
    }
    const prototype: unknown = Object.getPrototypeOf(current);
    if (prototype !== Object.prototype && prototype !== null) throw new NotPlain('only plain objects are JSON');
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(current)) {
      if (key === '__proto__') throw new NotPlain('a key may not be __proto__');
      copy[key] = copied((current as Record<string, unknown>)[key], depth + 1);
    }
    return copy;
  };
  return copied(value, 0);
};

/** Size of a value on the wire, in bytes of its JSON. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value), 'utf8');
