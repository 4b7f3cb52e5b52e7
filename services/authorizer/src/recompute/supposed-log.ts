import {
  type CapabilityGrant,
  type Instant,
  type Result,
  type Supposition,
  byCodeUnit,
  err,
  ok,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { type ParsedGrant, composeRootGrant, invariant, parseGrant } from '@sharedos/kernel';
import type { AuthorityFold } from '../fold/authority-fold.ts';
import type { AuthorityIndex } from '../fold/authority-index.ts';

/** What turns are answered from: a fold, or one that supposes something. */
export interface FoldView extends Pick<AuthorityFold, 'namespaces' | 'until' | 'oldest'> {
  readonly index: Pick<AuthorityIndex, 'heldAt' | 'grantAt'>;
}

/**
 * The log with one event supposed. A grant taken to be revoked was so before every admission; one taken to be issued was there at
 * every admission. Everything else is as it was.
 *
 * @returns Why the terms supposed make no grant.
 */
export const supposing = (fold: FoldView, namespaceId: string, suppose: Supposition): Result<FoldView, string> => {
  const { namespaces } = fold;
  const view = (index: FoldView['index']): Result<FoldView, string> =>
    ok({ namespaces, index, until: (position, deadlineMs) => fold.until(position, deadlineMs), oldest: fold.oldest });
  if (suppose.kind === 'revoke') return view(withoutGrant(fold.index, namespaceId, suppose.grantId));
  const grant = composeRootGrant(suppose.grant, { issuer: suppose.issuer, namespaceId, at: 0 });
  if (!grant.ok) return err(grant.error.code);
  const parsed = parseGrant(grant.value);
  return parsed.ok ? view(withGrant(fold.index, parsed.value.grant)) : err(parsed.error);
};

const withoutGrant = (index: FoldView['index'], namespaceId: string, grantId: string): FoldView['index'] => {
  const seen = (held: ParsedGrant, admittedAt: Instant): ParsedGrant =>
    held.grant.namespaceId === namespaceId && held.grant.id === grantId && held.grant.revokedAt === undefined
      ? read({ ...held.grant, revokedAt: timestampOf(admittedAt) })
      : held;
  return {
    heldAt: (of, subject, issuer, position, admittedAt, liveMax) =>
      index.heldAt(of, subject, issuer, position, admittedAt, liveMax).map((held) => seen(held, admittedAt)),
    grantAt: (of, id, position, admittedAt) => {
      const found = index.grantAt(of, id, position, admittedAt);
      return found === undefined ? undefined : seen(found, Number.isFinite(admittedAt) ? admittedAt : found.window.issuedAt);
    },
  };
};

const withGrant = (index: FoldView['index'], grant: CapabilityGrant): FoldView['index'] => {
  const issuedAt = (admittedAt: Instant): ParsedGrant => read({ ...grant, issuedAt: timestampOf(admittedAt) });
  return {
    heldAt: (of, subject, issuer, position, admittedAt, liveMax) => {
      const held = index.heldAt(of, subject, issuer, position, admittedAt, liveMax);
      const isItsHolder = of === grant.namespaceId && sameAddress(subject, grant.subject) && sameAddress(issuer, grant.issuer);
      if (!isItsHolder || held.some((other) => other.grant.id === grant.id)) return held;
      const added = issuedAt(admittedAt);
      const place = held.findIndex((other) => !isLive(other, admittedAt) || inSourceOrder(added, other) < 0);
      return held.toSpliced(place < 0 ? held.length : place, 0, added);
    },
    grantAt: (of, id, position, admittedAt) =>
      index.grantAt(of, id, position, admittedAt) ??
      (of === grant.namespaceId && id === grant.id ? issuedAt(Number.isFinite(admittedAt) ? admittedAt : 0) : undefined),
  };
};

const isLive = ({ window }: ParsedGrant, admittedAt: Instant): boolean => window.revokedAt > admittedAt && window.expiresAt > admittedAt;

/** The order of live grants of one holder: see `HeldGrants`. */
const inSourceOrder = (a: ParsedGrant, b: ParsedGrant): number =>
  Number(isBounded(a)) - Number(isBounded(b)) ||
  ascending(a.window.expiresAt, b.window.expiresAt) ||
  ascending(a.window.issuedAt, b.window.issuedAt) ||
  byCodeUnit(a.grant.id, b.grant.id);

const isBounded = ({ grant }: ParsedGrant): boolean => grant.constraints.maxUses !== undefined;
const ascending = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

const read = (grant: CapabilityGrant): ParsedGrant => {
  const parsed = parseGrant(grant);
  invariant(parsed.ok, 'a grant at another instant is a grant');
  return parsed.value;
};
