import { ADDRESS_KINDS, type Address, type AddressKind, addressId, addressOf } from '@sharedos/contracts';
import { type LoadedSections, Rows, type Sections, columnSections, loadColumns } from './columns.ts';
import { Texts } from './texts.ts';

/** Row numbers of two principals are one number below 2⁵³: with more principals than this a number could stand for two pairs. */
const PRINCIPALS_MAX = 2 ** 26;

interface Namespace {
  readonly id: string;
  /** From 1. */
  readonly row: number;
  readonly principals: Readonly<Record<AddressKind, Map<string, number>>>;
  /** The grants of this namespace, by id. */
  readonly grants: Map<string, number>;
}

/** The string table of the fold: namespaces, the principals in them, and pairs of holder and issuer. Rows count from 1. */
export class PrincipalTable {
  readonly #namespaces = new Map<string, Namespace>();
  readonly #namespaceOf: Namespace[] = [];
  readonly #ids: string[] = [''];
  readonly #names = new Texts();
  readonly #kinds = new Rows();
  readonly #pairs = new Map<number, number>();
  readonly #holders = { subject: new Rows(), issuer: new Rows() };

  /** Grants by id, of one namespace; `undefined` for a namespace without any. */
  grantsOf(namespaceId: string): Map<string, number> | undefined {
    return this.#namespaces.get(namespaceId)?.grants;
  }

  find(namespaceId: string, address: Address): number | undefined {
    return this.#namespaces.get(namespaceId)?.principals[address.kind].get(addressId(address));
  }

  /** The row of a principal, which gets one if it has none. */
  intern(namespaceId: string, address: Address): number {
    const namespace = this.#namespace(namespaceId);
    const id = addressId(address);
    const known = namespace.principals[address.kind].get(id);
    if (known !== undefined) return known;
    this.#names.add(JSON.stringify([namespaceId, address.kind, id]));
    return this.#enter(namespace, address.kind, id);
  }

  addressOf(principal: number): Address {
    return addressOf(ADDRESS_KINDS[this.#kinds.get(principal)] as AddressKind, this.#ids[principal] as string);
  }

  namespaceOf(principal: number): string {
    return (this.#namespaceOf[principal] as Namespace).id;
  }

  namespaceRowOf(principal: number): number {
    return (this.#namespaceOf[principal] as Namespace).row;
  }

  namespaceRow(namespaceId: string): number | undefined {
    return this.#namespaces.get(namespaceId)?.row;
  }

  get namespaces(): number {
    return this.#namespaces.size;
  }

  get size(): number {
    return this.#ids.length - 1;
  }

  get holders(): number {
    return this.#pairs.size;
  }

  findHolder(namespaceId: string, subject: Address, issuer: Address): number | undefined {
    const held = this.find(namespaceId, subject);
    const from = this.find(namespaceId, issuer);
    return held === undefined || from === undefined ? undefined : this.#pairs.get(pairOf(held, from));
  }

  internHolder(subject: number, issuer: number): number {
    const known = this.#pairs.get(pairOf(subject, issuer));
    if (known !== undefined) return known;
    const holder = this.#pairs.size + 1;
    this.#pairs.set(pairOf(subject, issuer), holder);
    this.#holders.subject.set(holder, subject);
    this.#holders.issuer.set(holder, issuer);
    return holder;
  }

  subjectOf(holder: number): number {
    return this.#holders.subject.get(holder);
  }

  issuerOf(holder: number): number {
    return this.#holders.issuer.get(holder);
  }

  sections(): Sections {
    return new Map([...this.#names.sections('principals'), ...columnSections('holders', this.#holders, this.#pairs.size + 1)]);
  }

  /** Into a table that is empty. */
  load(sections: LoadedSections): void {
    this.#names.load('principals', sections);
    for (let row = 0; row < this.#names.rows; row += 1) {
      const [namespaceId, kind, id] = JSON.parse(this.#names.get(row)) as [string, AddressKind, string];
      this.#enter(this.#namespace(namespaceId), kind, id);
    }
    loadColumns('holders', this.#holders, sections);
    const holders = (sections.get('holders.subject') as Uint8Array).byteLength / Uint32Array.BYTES_PER_ELEMENT;
    for (let holder = 1; holder < holders; holder += 1) this.#pairs.set(pairOf(this.subjectOf(holder), this.issuerOf(holder)), holder);
  }

  #namespace(id: string): Namespace {
    const known = this.#namespaces.get(id);
    if (known !== undefined) return known;
    const principals = { human: new Map(), agent: new Map(), group: new Map(), service: new Map() };
    const namespace: Namespace = { id, row: this.#namespaces.size + 1, principals, grants: new Map() };
    this.#namespaces.set(id, namespace);
    return namespace;
  }

  #enter(namespace: Namespace, kind: AddressKind, id: string): number {
    const principal = this.#ids.push(id) - 1;
    if (principal >= PRINCIPALS_MAX) throw new RangeError(`more than ${PRINCIPALS_MAX} principals in one log`);
    this.#namespaceOf[principal] = namespace;
    this.#kinds.set(principal, ADDRESS_KINDS.indexOf(kind));
    namespace.principals[kind].set(id, principal);
    return principal;
  }
}

const pairOf = (subject: number, issuer: number): number => subject * PRINCIPALS_MAX + issuer;
