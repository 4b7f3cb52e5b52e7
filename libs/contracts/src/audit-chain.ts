import { hashOf, sha256 } from './canonical.ts';
import type { ChainHead, SealedHead } from './wire/seal.ts';

/**
 * The records of one namespace as a hash chain, in the order of their stream: changing, leaving out, adding or moving one of them
 * changes the value of every one after it. Signed heads state that value now and then.
 *
 * @see docs/audit-proof.md for the format, from which a stranger can write a verifier
 */

/** The chain's value before the first record of a namespace. */
export const chainStart = (namespaceId: string): string => sha256(`sharedos.audit/1\n${namespaceId}`);

/** The chain's value after a record: `sequence` is its place in the stream, `record` the JSON value that is stored there. */
export const chainAfter = (previous: string, sequence: number, record: unknown): string =>
  sha256(`${previous}\n${sequence}\n${hashOf(record)}`);

/** One record with its number in its namespace, counted from 1, and the chain's value after it. */
export interface ChainLink {
  readonly count: number;
  readonly sequence: number;
  readonly chain: string;
  readonly record: unknown;
}

export type ChainFaultKind =
  /** A record is not what the chain says was stored. */
  | 'altered'
  /** Records are missing before this one. */
  | 'removed'
  /** A record stands where the chain has another, or comes again. */
  | 'out_of_order'
  /** The records end before a head that was seen. */
  | 'truncated'
  /** Two signed heads, or a head and the records, state different histories. */
  | 'forked'
  /** A head that no trusted key signed. */
  | 'bad_signature'
  | 'unknown_key'
  | 'other_namespace';

export interface ChainFault {
  readonly kind: ChainFaultKind;
  /** The number of the first record that cannot be trusted. */
  readonly first: number;
  /** The last record up to which the fault may lie, where only a range is known. */
  readonly last?: number;
  readonly why: string;
}

export interface ChainState {
  readonly count: number;
  readonly sequence: number;
  readonly chain: string;
}

export type SignatureCheck = (head: ChainHead, signature: string) => 'valid' | 'invalid' | 'unknown_key';

/**
 * Follows records and heads in order and says what is wrong at the first place where something is. After a fault it has nothing
 * more to say: what follows stands on what was already broken.
 */
export class ChainVerifier {
  readonly #namespaceId: string;
  readonly #check: SignatureCheck;
  readonly #remembered: ChainHead | undefined;
  #state: ChainState;
  #sealed: ChainState;
  #heads = 0;

  /**
   * @param check Whether a trusted key signed a head.
   * @param remembered A head seen at another time, that these records must contain.
   * @param from A signed head to begin after, where the records do not begin at the first.
   */
  constructor(
    namespaceId: string,
    check: SignatureCheck,
    options: { readonly remembered?: ChainHead | undefined; readonly from?: ChainHead | undefined } = {},
  ) {
    this.#namespaceId = namespaceId;
    this.#check = check;
    this.#remembered = options.remembered;
    this.#state = options.from ?? { count: 0, sequence: 0, chain: chainStart(namespaceId) };
    this.#sealed = this.#state;
  }

  get state(): ChainState {
    return this.#state;
  }

  /** How many records a trusted head vouches for. What follows is chained and not yet signed. */
  get sealed(): ChainState {
    return this.#sealed;
  }

  get heads(): number {
    return this.#heads;
  }

  record({ count, sequence, chain, record }: ChainLink): ChainFault | undefined {
    const next = this.#state.count + 1;
    if (namespaceOf(record) !== this.#namespaceId)
      return { kind: 'other_namespace', first: next, why: `record ${next} is of another namespace` };
    if (count > next) return { kind: 'removed', first: next, last: count - 1, why: `records ${next} to ${count - 1} are missing` };
    if (count < next || sequence <= this.#state.sequence)
      return { kind: 'out_of_order', first: next, why: `a record numbered ${count} stands where record ${next} belongs` };
    const computed = chainAfter(this.#state.chain, sequence, record);
    if (computed !== chain) return { kind: 'altered', first: count, why: `record ${count} is not the one that was stored in its place` };
    this.#state = { count, sequence, chain };
    if (this.#remembered?.count === count && this.#remembered.chain !== chain)
      return this.#forked(`record ${count} and those before it are not the ones of the remembered head`);
    return undefined;
  }

  head({ head, signature }: SealedHead): ChainFault | undefined {
    const { count } = this.#state;
    const first = this.#sealed.count + 1;
    if (head.namespaceId !== this.#namespaceId) return { kind: 'other_namespace', first, why: 'a head of another namespace' };
    const signed = this.#check(head, signature);
    if (signed === 'unknown_key') return { kind: 'unknown_key', first, why: `no key is known under the id of the head at ${head.count}` };
    if (signed === 'invalid') return { kind: 'bad_signature', first, why: `the head at ${head.count} was not signed by its key` };
    if (head.count > count)
      return { kind: 'removed', first: count + 1, last: head.count, why: `records ${count + 1} to ${head.count} are missing` };
    if (head.count < count && head.count !== this.#sealed.count)
      return { kind: 'out_of_order', first, why: `a head at ${head.count} comes after record ${count}` };
    const here = head.count === count ? this.#state : this.#sealed;
    if (head.chain !== here.chain || head.sequence !== here.sequence)
      return this.#forked(`the records up to ${head.count} are not the ones that were signed`);
    this.#sealed = here;
    this.#heads += 1;
    return undefined;
  }

  /** @returns What the whole of it lacks: the end that a remembered head had seen. */
  end(): ChainFault | undefined {
    const { count } = this.#state;
    if (this.#remembered === undefined || this.#remembered.count <= count) return undefined;
    const last = this.#remembered.count;
    return { kind: 'truncated', first: count + 1, last, why: `the records end at ${count}; a head of ${last} was seen before` };
  }

  #forked(why: string): ChainFault {
    const { count } = this.#state;
    return { kind: 'forked', first: this.#sealed.count + 1, last: Math.max(count, this.#sealed.count + 1), why };
  }
}

const namespaceOf = (record: unknown): unknown =>
  typeof record === 'object' && record !== null ? (record as { readonly namespaceId?: unknown }).namespaceId : undefined;
