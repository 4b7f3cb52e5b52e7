import { type Address, type CapabilityGrant, type Instant, instantOf, sameAddress, timestampOf } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { type ParsedGrant, boundGrant, invariant, parseGrant } from '@sharedos/kernel';
import { type LoadedSections, Numbers, Rows, type Sections, columnSections, loadColumns } from './columns.ts';
import { packGrant, unpackGrant } from './grant-text.ts';
import { PrincipalTable } from './principal-table.ts';
import { Texts } from './texts.ts';

/**
 * Every grant that was ever issued, one row each, from 1 and in the order of the log: columns for what is compared, and the rest of
 * the grant as text that is parsed when somebody needs it. What a grant costs is measured by `npm run bench -- grants`.
 */
export class GrantTable {
  readonly principals = new PrincipalTable();
  readonly #columns = {
    holder: new Rows(),
    /** The one principal over whose resources all its capabilities are; 0 when they name several, or one names none. */
    owner: new Rows(),
    /** The grant it was derived from, where that one was in the log before it; 0 otherwise. */
    parent: new Rows(),
    issuedPosition: new Numbers(),
    revokedPosition: new Numbers(),
    issuedAt: new Numbers(),
    expiresAt: new Numbers(),
    revokedAt: new Numbers(),
    isBounded: new Rows(),
  };
  readonly #ids: string[] = [''];
  /** Texts count from 0: those of a row stand one place before it. */
  readonly #idTexts = new Texts();
  readonly #bodies = new Texts();

  /** The digests of the calls that grants are bound to, by row: very few are. */
  readonly #bound = new Map<number, string>();

  /** How often a grant was read out of its text since the start. */
  read = 0;

  get size(): number {
    return this.#ids.length - 1;
  }

  find(namespaceId: string, grantId: string): number | undefined {
    return this.principals.grantsOf(namespaceId)?.get(grantId);
  }

  add(grant: CapabilityGrant, position: Position): number {
    const { id, namespaceId, subject, issuer, ...body } = grant;
    const { principals } = this;
    const { expiresAt: expiry, maxUses } = grant.constraints;
    const owner = onlyOwner(grant);
    const issuedAt = instantOf(grant.issuedAt) ?? 0;
    const expiresAt = expiry === undefined ? Infinity : (instantOf(expiry) ?? 0);
    const held = principals.intern(namespaceId, subject);
    const parent = grant.parentGrantId === undefined ? 0 : (this.find(namespaceId, grant.parentGrantId) ?? 0);
    this.#idTexts.add(JSON.stringify(id));
    this.#bodies.add(packGrant(body, { issuedAt, expiresAt, owner }));
    const row = this.#enter(namespaceId, id);
    const columns = this.#columns;
    columns.holder.set(row, principals.internHolder(held, principals.intern(namespaceId, issuer)));
    columns.owner.set(row, owner === undefined ? 0 : principals.intern(namespaceId, owner));
    columns.parent.set(row, parent);
    columns.issuedPosition.set(row, position);
    columns.revokedPosition.set(row, Infinity);
    columns.issuedAt.set(row, issuedAt);
    columns.expiresAt.set(row, expiresAt);
    columns.revokedAt.set(row, Infinity);
    columns.isBounded.set(row, maxUses === undefined ? 0 : 1);
    return row;
  }

  revoke(row: number, at: Instant, position: Position): void {
    this.#columns.revokedPosition.set(row, position);
    this.#columns.revokedAt.set(row, at);
  }

  /** In the append that issued it: the grant allows one call alone. */
  bind(namespaceId: string, grantId: string, callDigest: string): void {
    const row = this.find(namespaceId, grantId);
    if (row !== undefined) this.#bound.set(row, callDigest);
  }

  idOf(row: number): string {
    return this.#ids[row] as string;
  }

  holderOf(row: number): number {
    return this.#columns.holder.get(row);
  }

  ownerOf(row: number): number {
    return this.#columns.owner.get(row);
  }

  parentOf(row: number): number {
    return this.#columns.parent.get(row);
  }

  issuedPosition(row: number): Position {
    return this.#columns.issuedPosition.get(row);
  }

  /** Where in the log it was revoked; infinity when it was not. */
  revokedPosition(row: number): Position {
    return this.#columns.revokedPosition.get(row);
  }

  isIssuedAt(row: number, position: Position): boolean {
    return this.issuedPosition(row) <= position;
  }

  /** False at every position, the infinite one included, of a grant that was not revoked. */
  isRevokedAt(row: number, position: Position): boolean {
    const revoked = this.revokedPosition(row);
    return revoked !== Infinity && revoked <= position;
  }

  issuedAt(row: number): Instant {
    return this.#columns.issuedAt.get(row);
  }

  expiresAt(row: number): Instant {
    return this.#columns.expiresAt.get(row);
  }

  revokedAt(row: number): Instant {
    return this.#columns.revokedAt.get(row);
  }

  isBounded(row: number): boolean {
    return this.#columns.isBounded.get(row) === 1;
  }

  /** The grant as it was issued. */
  grant(row: number): CapabilityGrant {
    this.read += 1;
    const { principals } = this;
    const holder = this.holderOf(row);
    const subject = principals.subjectOf(holder);
    const owner = this.ownerOf(row);
    const columns = {
      issuedAt: this.issuedAt(row),
      expiresAt: this.expiresAt(row),
      owner: owner === 0 ? undefined : principals.addressOf(owner),
    };
    return {
      id: this.idOf(row),
      namespaceId: principals.namespaceOf(subject),
      subject: principals.addressOf(subject),
      issuer: principals.addressOf(principals.issuerOf(holder)),
      ...unpackGrant(this.#bodies.get(row - 1), columns),
    };
  }

  /**
   * The grant as a turn sees it that was admitted at `admittedAt`. Position, not time, decides revocation: what is revoked at or
   * below `position` is handed out as revoked no later than the admission, so a clock that runs behind the one which stamped the
   * revocation revives nothing.
   */
  asSeenAt(row: number, position: Position, admittedAt: Instant): ParsedGrant {
    const grant = this.grant(row);
    const isRevoked = this.isRevokedAt(row, position);
    const parsed = parseGrant(isRevoked ? { ...grant, revokedAt: timestampOf(Math.min(this.revokedAt(row), admittedAt)) } : grant);
    invariant(parsed.ok, 'a grant of a parsed event meets its contract');
    const boundTo = this.#bound.size === 0 ? undefined : this.#bound.get(row);
    return boundTo === undefined ? parsed.value : boundGrant(parsed.value, boundTo);
  }

  sections(): Sections {
    const rows = this.#ids.length;
    return new Map([
      ...this.principals.sections(),
      ...columnSections('grants', this.#columns, rows),
      ...this.#idTexts.sections('ids'),
      ...this.#bodies.sections('bodies'),
      [BOUND, [new TextEncoder().encode(JSON.stringify([...this.#bound]))]],
    ]);
  }

  /** Into a table that is empty. */
  load(sections: LoadedSections): void {
    this.principals.load(sections);
    loadColumns('grants', this.#columns, sections);
    this.#bodies.load('bodies', sections);
    this.#idTexts.load('ids', sections);
    // A snapshot of a release before there were bound grants holds none.
    const bound = sections.get(BOUND);
    const entries = bound === undefined ? [] : (JSON.parse(new TextDecoder().decode(bound)) as readonly (readonly [number, string])[]);
    for (const [row, callDigest] of entries) this.#bound.set(row, callDigest);
    for (let text = 0; text < this.#idTexts.rows; text += 1) {
      const namespaceId = this.principals.namespaceOf(this.principals.subjectOf(this.holderOf(text + 1)));
      this.#enter(namespaceId, JSON.parse(this.#idTexts.get(text)) as string);
    }
  }

  #enter(namespaceId: string, id: string): number {
    const row = this.#ids.push(id) - 1;
    this.principals.grantsOf(namespaceId)?.set(id, row);
    return row;
  }
}

const BOUND = 'grants.bound';

const onlyOwner = ({ capabilities }: CapabilityGrant): Address | undefined => {
  const owner = capabilities[0]?.resource.owner;
  if (owner === undefined) return undefined;
  return capabilities.every(({ resource }) => resource.owner !== undefined && sameAddress(resource.owner, owner)) ? owner : undefined;
};
