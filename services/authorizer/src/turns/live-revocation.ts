import { revisionOf } from '@sharedos/contracts';
import type { RevocationAnswer, RevocationAsk } from '@sharedos/kernel';
import type { Ports } from '../ports.ts';

/**
 * What of a grant and its chain is revoked at the head of this replica's fold: the revocations that a turn is not to wait for. A
 * replica that is not to be trusted knows nothing of them, and then nothing can be decided.
 *
 * @see spec/turns.md §15, "Revocation faster than a turn"
 */
export const liveRevocation =
  ({ fold, store }: Pick<Ports, 'fold' | 'store'>) =>
  ({ namespaceId, grantIds }: RevocationAsk): RevocationAnswer => {
    if (fold.trouble !== undefined) return 'unavailable';
    const isRevoked = (id: string): boolean => fold.index.grantAt(namespaceId, id, Infinity, Infinity)?.grant.revokedAt !== undefined;
    return { revision: revisionOf(store.storeId, fold.position), revokedGrantIds: grantIds.filter(isRevoked) };
  };
