import { SUBJECT_ROOT, type UseClaim, hashOf, namespaceSubject, parseSubject } from '@sharedos/contracts';
import type { OperationKey, OperationPlace } from './ledger.ts';

/** Where the records of an operation are. The hash makes a key of any length and spelling one token, and the fields stay apart. */
export const operationSubject = ({ namespaceId, kind, requester, id }: OperationKey): string =>
  placeSubject({ namespaceId, kind, name: hashOf({ namespaceId, kind, requester, id }) });

/** The same of an operation whose key is not known. */
export const placeSubject = ({ namespaceId, kind, name }: OperationPlace): string =>
  readable(namespaceSubject('ledger', namespaceId, kind, name));

/** Reads {@link placeSubject} back. */
export const placeOfSubject = (natsSubject: string): OperationPlace | undefined => {
  const parsed = parseSubject(natsSubject);
  if (parsed?.verb !== 'ledger') return undefined;
  const [kind, name, ...more] = parsed.rest;
  if ((kind !== 'execution' && kind !== 'message') || name === undefined || more.length > 0) return undefined;
  return { namespaceId: parsed.namespaceId, kind, name };
};

/** All operations of a kind in a namespace, as a filter. */
export const placesOf = (namespaceId: string, kind: OperationKey['kind']): string =>
  `${readable(namespaceSubject('ledger', namespaceId, kind))}.*`;

/** All turns of all namespaces, as a filter. */
export const ALL_EXECUTIONS = `${SUBJECT_ROOT}.*.ledger.execution.*`;

/** Where the claim of one use of a bounded grant is. */
export const useSubject = (namespaceId: string, { grantId, ordinal }: Pick<UseClaim, 'grantId' | 'ordinal'>): string =>
  readable(namespaceSubject('ledger', namespaceId, 'use', grantId, String(ordinal)));

/** Reads {@link useSubject} back. */
export const useOfSubject = (
  natsSubject: string,
): { readonly namespaceId: string; readonly grantId: string; readonly ordinal: number } | undefined => {
  const parsed = parseSubject(natsSubject);
  if (parsed?.verb !== 'ledger') return undefined;
  const [kind, grantId, digits, ...more] = parsed.rest;
  const ordinal = Number(digits);
  if (kind !== 'use' || grantId === undefined || String(ordinal) !== digits || more.length > 0) return undefined;
  return Number.isSafeInteger(ordinal) && ordinal >= 1 ? { namespaceId: parsed.namespaceId, grantId, ordinal } : undefined;
};

// A record on a subject that its readers drop could never be counted: the uses could not be read at all, for anybody.
const readable = (natsSubject: string): string => {
  if (parseSubject(natsSubject) === undefined) throw new RangeError('an identifier of the ledger must be a trimmed NameId');
  return natsSubject;
};
