import {
  type Address,
  type CapabilityGrant,
  type GrantEvent,
  type Instant,
  addressKey,
  byCodeUnit,
  encodeName,
  instantOf,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { GRANTS_MAX, type ParsedGrant, invariant, parseGrant } from '@sharedos/kernel';

/** A grant with the places in the log where it was issued and revoked; what "authority at R" is answered from. */
interface Held {
  readonly parsed: ParsedGrant;
  readonly grant: CapabilityGrant;
  readonly issuedAt: Position;
  readonly order: SourceOrder;
  revocation?: { readonly position: Position; readonly at: Instant };
}

interface SourceOrder {
  readonly bounded: boolean;
  readonly expiresAt: Instant;
  readonly issuedAt: Instant;
}

/**
 * The log of grants, folded: who held what, issued by whom, at any position. It is the grant source of the services, and the
 * resolver of ancestors. A projection refuses nothing: it folds what happened.
 *
 * @see docs/architecture.md, "The log, revisions, opening a turn"
 */
export class AuthorityIndex {
  readonly #byHolder = new Map<string, Held[]>();
  readonly #byId = new Map<string, Held>();
  /** The greatest `at` of any event so far, noted wherever it grew: positions ascending, instants ascending. */
  readonly #latest: { readonly position: Position; readonly at: Instant }[] = [];

  apply(namespaceId: string, event: GrantEvent, at: Instant, position: Position): void {
    if (at > (this.#latest.at(-1)?.at ?? Number.NEGATIVE_INFINITY)) this.#latest.push({ position, at });
    if (event.type === 'GrantIssued') this.#issue(event.grant, position);
    else this.#revoke(namespaceId, event.grantId, instantOf(event.revokedAt) ?? at, position);
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The greatest `at` of any event at or below `position`: no turn opened there may be admitted earlier. */
  latestInstant(position: Position): Instant {
    let low = 0;
    let high = this.#latest.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#latest[middle]?.position ?? Infinity) <= position) low = middle + 1;
      else high = middle;
    }
    return this.#latest[low - 1]?.at ?? 0;
  }

  /**
   * Grants held by `subject` from `issuer` at `position`, as seen by a turn admitted at `admittedAt`.
   *
   * Live grants come first, those without `maxUses` before bounded ones, then the earliest to expire, so that an unbounded
   * grant is never shadowed. The most recently ended follow, revoked or expired by the admission, up to {@link GRANTS_MAX}, so
   * an agent does not lock up with age. More live grants than that are all returned: the loader refuses them.
   */
  heldAt(namespaceId: string, subject: Address, issuer: Address, position: Position, admittedAt: Instant): readonly ParsedGrant[] {
    const known = this.#byHolder.get(holderKey(namespaceId, subject, issuer)) ?? [];
    const issued = known.filter((held) => held.issuedAt <= position);
    // What expired before the turn began can never be used in it: a turn's time only goes forward.
    const hasEnded = (held: Held): boolean => revocationAt(held, position) !== undefined || held.order.expiresAt <= admittedAt;
    const endOf = (held: Held): Instant => Math.min(held.order.expiresAt, revocationAt(held, position)?.at ?? Infinity);
    const live = issued.filter((held) => !hasEnded(held)).sort(inSourceOrder);
    const ended = issued
      .filter(hasEnded)
      .sort((a, b) => ascending(endOf(b), endOf(a)) || ascending(b.issuedAt, a.issuedAt))
      .slice(0, Math.max(0, GRANTS_MAX - live.length));
    return [...live, ...ended].map((held) => asSeenAt(held, position, admittedAt));
  }

  /** One grant at `position`, revoked or not; revoked ones are kept, so a chain can say why it broke. */
  grantAt(namespaceId: string, grantId: string, position: Position, admittedAt: Instant): ParsedGrant | undefined {
    const held = this.#byId.get(encodeName(namespaceId, grantId));
    return held === undefined || held.issuedAt > position ? undefined : asSeenAt(held, position, admittedAt);
  }

  /** Grants of a namespace that `principal` issued or holds, ordered by id, after `after`. */
  list(
    namespaceId: string,
    role: 'issuer' | 'subject',
    principal: Address,
    page: { after?: string; limit: number },
  ): readonly CapabilityGrant[] {
    return [...this.#byId.values()]
      .filter(({ grant }) => grant.namespaceId === namespaceId && sameAddress(grant[role], principal))
      .filter(({ grant }) => page.after === undefined || byCodeUnit(grant.id, page.after) > 0)
      .sort((a, b) => byCodeUnit(a.grant.id, b.grant.id))
      .slice(0, page.limit)
      .map((held) => asSeenAt(held, Infinity, Infinity).grant);
  }

  #issue(grant: CapabilityGrant, position: Position): void {
    const parsed = parseGrant(grant);
    invariant(parsed.ok, 'a grant in a parsed event meets its contract');
    const held: Held = {
      parsed: parsed.value,
      grant,
      issuedAt: position,
      order: {
        bounded: grant.constraints.maxUses !== undefined,
        expiresAt: grant.constraints.expiresAt === undefined ? Infinity : (instantOf(grant.constraints.expiresAt) ?? 0),
        issuedAt: instantOf(grant.issuedAt) ?? 0,
      },
    };
    this.#byId.set(encodeName(grant.namespaceId, grant.id), held);
    const key = holderKey(grant.namespaceId, grant.subject, grant.issuer);
    const others = this.#byHolder.get(key);
    if (others === undefined) this.#byHolder.set(key, [held]);
    else others.push(held);
  }

  #revoke(namespaceId: string, grantId: string, revokedAt: Instant, position: Position): void {
    const held = this.#byId.get(encodeName(namespaceId, grantId));
    if (held !== undefined) held.revocation ??= { position, at: revokedAt };
  }
}

const holderKey = (namespaceId: string, subject: Address, issuer: Address): string =>
  encodeName(namespaceId, addressKey(subject), addressKey(issuer));

const revocationAt = ({ revocation }: Held, position: Position) =>
  revocation !== undefined && revocation.position <= position ? revocation : undefined;

/**
 * Position, not time, decides revocation: what is revoked at or below `position` is handed out as revoked no later than the
 * admission, so a clock that runs behind the one which stamped the revocation revives nothing.
 */
const asSeenAt = (held: Held, position: Position, admittedAt: Instant): ParsedGrant => {
  const revocation = revocationAt(held, position);
  if (revocation === undefined) return held.parsed;
  const ended = parseGrant({ ...held.grant, revokedAt: timestampOf(Math.min(revocation.at, admittedAt)) });
  invariant(ended.ok, 'a revoked grant meets its contract');
  return ended.value;
};

const inSourceOrder = (a: Held, b: Held): number =>
  Number(a.order.bounded) - Number(b.order.bounded) ||
  ascending(a.order.expiresAt, b.order.expiresAt) ||
  ascending(a.order.issuedAt, b.order.issuedAt) ||
  byCodeUnit(a.grant.id, b.grant.id);

const ascending = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);
