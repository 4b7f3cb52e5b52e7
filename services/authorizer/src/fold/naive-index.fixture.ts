import { type Address, type CapabilityGrant, type GrantEvent, timestampOf } from '@sharedos/contracts';

/** One event of a history: what happened, stamped with which instant. Its place in the history, from 1, is its position. */
export interface Happened {
  readonly event: GrantEvent;
  readonly at: number;
}

interface Known {
  readonly grant: CapabilityGrant;
  readonly place: number;
  readonly revoked?: { readonly place: number; readonly at: number };
}

const same = (a: Address, b: Address): boolean => JSON.stringify(a) === JSON.stringify(b);
const expiry = ({ grant }: Known): number =>
  grant.constraints.expiresAt === undefined ? Infinity : Date.parse(grant.constraints.expiresAt);

/**
 * The index stated a second time, in longhand and without any order that is kept: every question folds the history anew, up to the
 * position it is about.
 */
export class NaiveIndex {
  readonly #namespaceId: string;
  readonly #history: readonly Happened[];

  constructor(namespaceId: string, history: readonly Happened[]) {
    this.#namespaceId = namespaceId;
    this.#history = history;
  }

  latestInstant(position: number): number {
    const instants = this.#history.slice(0, position).map(({ at }) => at);
    return instants.length === 0 ? 0 : Math.max(...instants);
  }

  heldAt(subject: Address, issuer: Address, position: number, admittedAt: number, most = 256): readonly CapabilityGrant[] {
    const mine = this.#upTo(position).filter(({ grant }) => same(grant.subject, subject) && same(grant.issuer, issuer));
    const isLive = (known: Known): boolean => known.revoked === undefined && expiry(known) > admittedAt;
    const sortText = ({ grant }: Known): string => {
      const numbers = [
        grant.constraints.maxUses === undefined ? 0 : 1,
        Math.min(expiry({ grant, place: 0 }), 9e15),
        Date.parse(grant.issuedAt),
      ];
      return `${numbers.map((number) => String(number).padStart(20, '0')).join(' ')} ${grant.id}`;
    };
    const live = mine.filter(isLive).sort((a, b) => (sortText(a) < sortText(b) ? -1 : 1));
    const end = (known: Known): number => Math.min(expiry(known), known.revoked?.at ?? Infinity);
    const ended = mine.filter((known) => !isLive(known)).sort((a, b) => end(b) - end(a) || b.place - a.place);
    return [...live, ...ended.slice(0, Math.max(0, most - live.length))].map((known) => seen(known, admittedAt));
  }

  grantAt(grantId: string, position: number, admittedAt: number): CapabilityGrant | undefined {
    const known = this.#upTo(position).find(({ grant }) => grant.id === grantId);
    return known === undefined ? undefined : seen(known, admittedAt);
  }

  list(role: 'issuer' | 'subject', principal: Address, after: string | undefined): readonly CapabilityGrant[] {
    return this.#inOrderOfId(({ grant }) => same(grant[role], principal), after);
  }

  children(grantId: string): readonly CapabilityGrant[] {
    return this.#upTo(this.#history.length)
      .filter(({ grant }) => grant.parentGrantId === grantId)
      .map((known) => seen(known, Infinity));
  }

  changedAfter(principal: Address, position: number): readonly string[] {
    const ids = this.#history.slice(position).map(({ event }) => (event.type === 'GrantIssued' ? event.grant.id : event.grantId));
    const mine = this.#upTo(this.#history.length)
      .filter(({ grant }) => same(grant.subject, principal) || same(grant.issuer, principal))
      // A second revocation of a grant changed nothing.
      .filter(({ place, revoked }) => place > position || (revoked !== undefined && revoked.place > position));
    return [...new Set(ids)].filter((id) => mine.some(({ grant }) => grant.id === id));
  }

  #inOrderOfId(isIn: (known: Known) => boolean, after: string | undefined): readonly CapabilityGrant[] {
    return this.#upTo(this.#history.length)
      .filter(isIn)
      .map((known) => seen(known, Infinity))
      .filter(({ id }) => after === undefined || id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  #upTo(position: number): readonly Known[] {
    const known = new Map<string, Known>();
    this.#history.slice(0, position).forEach(({ event }, index) => {
      if (event.type === 'GrantIssued') {
        if (event.grant.namespaceId === this.#namespaceId) known.set(event.grant.id, { grant: event.grant, place: index + 1 });
        return;
      }
      if (event.type === 'GrantBound') return;
      const found = known.get(event.grantId);
      if (found !== undefined && found.revoked === undefined)
        known.set(event.grantId, { ...found, revoked: { place: index + 1, at: Date.parse(event.revokedAt) } });
    });
    return [...known.values()];
  }
}

const seen = ({ grant, revoked }: Known, admittedAt: number): CapabilityGrant =>
  revoked === undefined ? grant : { ...grant, revokedAt: timestampOf(Math.min(revoked.at, admittedAt)) };
