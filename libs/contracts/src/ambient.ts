import { randomUUID } from 'node:crypto';

// What no rule may touch and an embedded host should not have to supply: defaults of ports, each replaceable where it is used.

/** A fresh identifier that never repeats. */
export const randomId = (): string => randomUUID();

/** Milliseconds of a clock that only goes forward, for durations; it says nothing about the time of day. */
export const monotonicMs = (): number => performance.now();
