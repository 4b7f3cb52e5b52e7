import { describe, expect, it } from 'vitest';
import { type ChainLink, ChainVerifier, chainAfter, chainStart } from './audit-chain.ts';
import { canonicalJson, sha256 } from './canonical.ts';
import type { ChainHead, SealedHead } from './wire/seal.ts';

const NAMESPACE = 'w1';
/** Stands in for a signature: whoever knows the word can make one. */
const signature = (head: ChainHead): string => sha256(`trusted ${canonicalJson(head)}`);
const check = (head: ChainHead, given: string) =>
  head.keyId !== 'key-1' ? 'unknown_key' : given === signature(head) ? 'valid' : ('invalid' as const);

interface TestRecord {
  readonly namespaceId: string;
  readonly id: string;
  readonly outcome: string;
  readonly metadata: { readonly order: number };
}
const recordAt = (count: number, over: Partial<TestRecord> = {}): TestRecord => ({
  namespaceId: NAMESPACE,
  id: `record-${count}`,
  outcome: 'allowed',
  metadata: { order: count },
  ...over,
});

/** Records with gaps between their places, as other namespaces leave them. */
const chainOf = (records: readonly TestRecord[]): readonly (ChainLink & { readonly record: TestRecord })[] => {
  let chain = chainStart(NAMESPACE);
  return records.map((record, index) => {
    const sequence = 3 * index + 2;
    chain = chainAfter(chain, sequence, record);
    return { count: index + 1, sequence, chain, record };
  });
};
const TEN = chainOf(Array.from({ length: 10 }, (_, index) => recordAt(index + 1)));
const headAt = (link: ChainLink | undefined, over: Partial<ChainHead> = {}): SealedHead => {
  if (link === undefined) throw new Error('no such record');
  const { count, sequence, chain } = link;
  const head: ChainHead = {
    version: '1',
    namespaceId: NAMESPACE,
    count,
    sequence,
    chain,
    at: '2026-01-01T12:00:00.000Z',
    keyId: 'key-1',
    ...over,
  };
  return { head, signature: signature(head) };
};

type Step = { readonly link: ChainLink } | { readonly sealed: SealedHead };
const steps = (links: readonly ChainLink[], ...heads: readonly SealedHead[]): readonly Step[] =>
  links.flatMap((link) => [{ link }, ...heads.filter(({ head }) => head.count === link.count).map((sealed) => ({ sealed }))]);
const verified = (given: readonly Step[], options: ConstructorParameters<typeof ChainVerifier>[2] = {}) => {
  const verifier = new ChainVerifier(NAMESPACE, check, options);
  for (const step of given) {
    const fault = 'link' in step ? verifier.record(step.link) : verifier.head(step.sealed);
    if (fault !== undefined) return fault;
  }
  return verifier.end() ?? { kind: 'sound', sealed: verifier.sealed.count, count: verifier.state.count, heads: verifier.heads };
};
const HEADS = [headAt(TEN[4]), headAt(TEN[9])];

describe('a chain of records', () => {
  it('is sound as it was written, as far as a head was signed', () => {
    expect(verified(steps(TEN, ...HEADS))).toEqual({ kind: 'sound', sealed: 10, count: 10, heads: 2 });
    expect(verified(steps(TEN, headAt(TEN[4])))).toMatchObject({ kind: 'sound', sealed: 5, count: 10 });
    expect(verified([])).toMatchObject({ kind: 'sound', sealed: 0, count: 0 });
  });

  it('names the record of which any one field was changed', () => {
    const changes: readonly Partial<TestRecord>[] = [{ id: 'x' }, { outcome: 'denied' }, { metadata: { order: 0 } }];
    for (const change of changes) {
      for (const [index, link] of TEN.entries()) {
        const forged = TEN.with(index, { ...link, record: { ...link.record, ...change } });
        expect(verified(steps(forged, ...HEADS))).toMatchObject({ kind: 'altered', first: index + 1 });
      }
    }
  });

  it('names the first record that is missing', () => {
    expect(verified(steps(TEN.toSpliced(3, 2), ...HEADS))).toMatchObject({ kind: 'removed', first: 4, last: 5 });
    expect(verified(steps(TEN.slice(1), ...HEADS))).toMatchObject({ kind: 'removed', first: 1 });
  });

  it('finds a record that was left out and the rest numbered anew', () => {
    const renumbered = TEN.toSpliced(3, 1).map((link, index) => ({ ...link, count: index + 1 }));
    expect(verified(steps(renumbered, ...HEADS))).toMatchObject({ kind: 'altered', first: 4 });
  });

  it('finds a record that was put in, stands twice, or changed places', () => {
    const [third, fourth] = [TEN[2] as ChainLink, TEN[3] as ChainLink];
    expect(verified(steps(TEN.toSpliced(3, 0, third as never)))).toMatchObject({ kind: 'out_of_order', first: 4 });
    expect(verified(steps(TEN.toSpliced(2, 2, fourth as never, third as never)))).toMatchObject({ kind: 'removed', first: 3 });
    const swapped = TEN.toSpliced(2, 2, { ...fourth, count: 3 } as never, { ...third, count: 4 } as never);
    expect(verified(steps(swapped))).toMatchObject({ kind: 'altered', first: 3 });
  });

  it('finds one that was written anew from some record on, at the head that does not know it', () => {
    const rewritten = chainOf(TEN.map(({ record }, index) => (index === 6 ? recordAt(7, { outcome: 'denied' }) : record)));
    expect(verified(steps(rewritten, ...HEADS))).toMatchObject({ kind: 'forked', first: 6, last: 10 });
  });

  it('is of one namespace alone', () => {
    const stray = TEN.with(2, { ...(TEN[2] as (typeof TEN)[number]), record: recordAt(3, { namespaceId: 'w2' }) });
    expect(verified(steps(stray))).toMatchObject({ kind: 'other_namespace', first: 3 });
    expect(verified(steps(TEN, headAt(TEN[4], { namespaceId: 'w2' })))).toMatchObject({ kind: 'other_namespace' });
    expect(chainStart('w2')).not.toBe(chainStart(NAMESPACE));
  });

  it('ends where it ended, for whoever remembers a head', () => {
    const remembered = headAt(TEN[9]).head;
    expect(verified(steps(TEN, ...HEADS), { remembered })).toMatchObject({ kind: 'sound' });
    expect(verified(steps(TEN.slice(0, 8), ...HEADS), { remembered })).toMatchObject({ kind: 'truncated', first: 9, last: 10 });
  });

  it('is not another history of the same length that was signed as well', () => {
    const other = chainOf(TEN.map(({ record }) => ({ ...record, outcome: 'denied' })));
    const signed = headAt(other[9]);
    expect(verified(steps(other, signed))).toMatchObject({ kind: 'sound' });
    expect(verified(steps(other, signed), { remembered: headAt(TEN[9]).head })).toMatchObject({ kind: 'forked', last: 10 });
    expect(verified([...steps(TEN, ...HEADS), { sealed: signed }])).toMatchObject({ kind: 'forked' });
  });

  it('believes no head of an unknown key, with a signature of another head, or before its records', () => {
    expect(verified(steps(TEN, headAt(TEN[4], { keyId: 'key-2' })))).toMatchObject({ kind: 'unknown_key' });
    expect(verified(steps(TEN, { ...headAt(TEN[4]), signature: headAt(TEN[9]).signature }))).toMatchObject({ kind: 'bad_signature' });
    expect(verified([{ sealed: headAt(TEN[4]) }])).toMatchObject({ kind: 'removed', first: 1, last: 5 });
    expect(verified([...steps(TEN), { sealed: headAt(TEN[4]) }])).toMatchObject({ kind: 'out_of_order' });
  });

  it('may begin after a head that is trusted', () => {
    expect(verified(steps(TEN.slice(5), headAt(TEN[9])), { from: headAt(TEN[4]).head })).toMatchObject({ kind: 'sound', sealed: 10 });
    expect(verified(steps(TEN.slice(6), headAt(TEN[9])), { from: headAt(TEN[4]).head })).toMatchObject({
      kind: 'removed',
      first: 6,
      last: 6,
    });
  });
});
