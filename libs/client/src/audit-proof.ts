import { createPublicKey, createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import {
  type ChainFault,
  type ChainHead,
  ChainVerifier,
  Hash,
  Id,
  type RecordsPage,
  SealedHead,
  type SignatureCheck,
  namedKeyOf,
  signatureCheck,
} from '@sharedos/contracts';
import { z } from 'zod';

/**
 * An export of records with their proof: JSON Lines, the first of them this header, then records and signed heads in order.
 *
 * @see docs/audit-proof.md
 */
const Line = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('export'), version: z.literal('1'), namespaceId: Id, from: SealedHead.optional() }),
  z.strictObject({ type: z.literal('record'), count: z.int().min(1), sequence: z.int().min(1), chain: Hash, record: z.unknown() }),
  z.strictObject({ type: z.literal('head'), head: SealedHead.shape.head, signature: SealedHead.shape.signature }),
]);

/** A file that is no export, or no longer one: nothing can be said of the records after that line. */
export interface BrokenLine {
  readonly kind: 'malformed';
  readonly line: number;
  readonly why: string;
}

export type ProofFault = BrokenLine | (ChainFault & { readonly line: number });

export interface ProofSound {
  readonly namespaceId: string;
  readonly records: number;
  readonly heads: number;
  /** Records that a signed head vouches for; what follows is chained and waits for its signature. */
  readonly sealed: number;
  /** The last head, for remembering. */
  readonly head: ChainHead | undefined;
}

export type ProofVerdict = { readonly sound: true; readonly value: ProofSound } | { readonly sound: false; readonly fault: ProofFault };

/** Public keys by id, from text `id:key,…` in DER as base64url. @throws RangeError on anything that is no Ed25519 key. */
export const trustedKeys = (text: string): SignatureCheck => {
  const keys = new Map<string, KeyObject>();
  for (const entry of text.split(',')) {
    const named = namedKeyOf(entry);
    const key = named === undefined ? undefined : publicKeyOf(named.der);
    if (named === undefined || key?.asymmetricKeyType !== 'ed25519')
      throw new RangeError(`not an Ed25519 key of the form id:key: ${entry.slice(0, 40)}`);
    keys.set(named.keyId, key);
  }
  return signatureCheck(keys);
};

const publicKeyOf = (der: string): KeyObject | undefined => {
  const key = Buffer.from(der, 'base64url');
  try {
    return createPublicKey({ key, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
};

/** A new pair of keys of the proof: the private one for the projectors' `SHAREDOS_SEAL_KEYS`, the public one for whoever verifies. */
export const newSealKeys = (keyId: string): { readonly privateKey: string; readonly publicKey: string } => {
  const pair = generateKeyPairSync('ed25519');
  const privateDer = pair.privateKey.export({ format: 'der', type: 'pkcs8' });
  const publicDer = createPublicKey(createPrivateKey({ key: privateDer, format: 'der', type: 'pkcs8' })).export({
    format: 'der',
    type: 'spki',
  });
  return { privateKey: `${keyId}:${privateDer.toString('base64url')}`, publicKey: `${keyId}:${publicDer.toString('base64url')}` };
};

/** The lines of one page, each head after the record that it stands on. */
export const exportLines = ({ records, heads }: Pick<RecordsPage, 'records' | 'heads'>): readonly string[] => {
  const waiting = [...heads];
  const lines: string[] = [];
  const headsUpTo = (sequence: number): void => {
    while (waiting[0] !== undefined && waiting[0].head.sequence <= sequence)
      lines.push(JSON.stringify({ type: 'head', ...waiting.shift() }));
  };
  for (const { count, sequence, chain, event } of records) {
    lines.push(JSON.stringify({ type: 'record', count, sequence, chain, record: event }));
    headsUpTo(sequence);
  }
  headsUpTo(Infinity);
  return lines;
};

export const exportHeader = (namespaceId: string): string => JSON.stringify({ type: 'export', version: '1', namespaceId });

/**
 * Verifies an export from its lines, without any service: every record against its link, every head against a trusted key, the end
 * against a remembered head.
 */
export const verifyExport = async (
  lines: AsyncIterable<string> | Iterable<string>,
  check: SignatureCheck,
  remembered?: ChainHead,
): Promise<ProofVerdict> => {
  let verifier: ChainVerifier | undefined;
  let namespaceId = '';
  let head: ChainHead | undefined;
  let number = 0;
  let records = 0;
  const broken = (why: string): ProofVerdict => ({ sound: false, fault: { kind: 'malformed', line: number, why } });
  for await (const text of lines) {
    number += 1;
    const line = lineOf(text);
    if (line === undefined) return broken('it is not a line of an export');
    if ((line.type === 'export') !== (number === 1)) return broken('an export begins with its header, and has no other');
    if (line.type === 'export') {
      namespaceId = line.namespaceId;
      if (line.from !== undefined && check(line.from.head, line.from.signature) !== 'valid')
        return broken('no trusted key signed the head that it begins after');
      verifier = new ChainVerifier(namespaceId, check, { remembered, from: line.from?.head });
      continue;
    }
    const fault = line.type === 'record' ? verifier?.record({ ...line, record: line.record }) : verifier?.head(line);
    if (fault !== undefined) return { sound: false, fault: { ...fault, line: number } };
    if (line.type === 'record') records += 1;
    else head = line.head;
  }
  if (verifier === undefined) return broken('it is empty');
  const fault = verifier.end();
  if (fault !== undefined) return { sound: false, fault: { ...fault, line: number } };
  return { sound: true, value: { namespaceId, records, heads: verifier.heads, sealed: verifier.sealed.count, head } };
};

const lineOf = (text: string): z.infer<typeof Line> | undefined => {
  try {
    const line = Line.safeParse(JSON.parse(text));
    return line.success ? line.data : undefined;
  } catch {
    return undefined;
  }
};
