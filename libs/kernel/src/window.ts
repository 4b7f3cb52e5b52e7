import { type CapabilityGrant, type Instant, instantOf } from '@sharedos/contracts';

/**
 * The instants that bound a grant. An absent bound is infinite and an unreadable one is `NaN`; every comparison below is
 * written so that `NaN` fails it, so what cannot be read never opens a window.
 */
export interface WindowBounds {
  readonly issuedAt: Instant;
  readonly notBefore: Instant;
  readonly expiresAt: Instant;
  readonly revokedAt: Instant;
}

export const windowOf = ({
  issuedAt,
  revokedAt,
  constraints,
}: Pick<CapabilityGrant, 'issuedAt' | 'revokedAt' | 'constraints'>): WindowBounds => ({
  issuedAt: readable(issuedAt),
  notBefore: constraints.notBefore === undefined ? -Infinity : readable(constraints.notBefore),
  expiresAt: constraints.expiresAt === undefined ? Infinity : readable(constraints.expiresAt),
  revokedAt: revokedAt === undefined ? Infinity : readable(revokedAt),
});

const readable = (text: string): Instant => instantOf(text) ?? NaN;

/**
 * Whether a grant is inside its window. Everything that could open or close it by a change of the store is judged at the
 * admission instant `admittedAt`; expiry alone also at the operation instant `now`, because time passing may only take away.
 * A clock that goes back revives nothing.
 *
 * Starts are inclusive, `expiresAt` is exclusive, and a grant is gone from exactly `revokedAt`.
 *
 * @see spec/authorization.md §7.1
 */
export const isInsideWindow = (bounds: WindowBounds, admittedAt: Instant, now: Instant): boolean =>
  bounds.issuedAt <= admittedAt &&
  bounds.notBefore <= admittedAt &&
  admittedAt < bounds.expiresAt &&
  now < bounds.expiresAt &&
  admittedAt < bounds.revokedAt;
