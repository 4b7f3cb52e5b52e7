import { pause } from '@sharedos/bus';
import { type Address, type EscalationQuestion, addressKey, addressPath } from '@sharedos/contracts';
import { capabilityMatches } from '@sharedos/kernel';
import type { Ports } from '../ports.ts';
import { upToDate } from '../turns/up-to-date.ts';
import { REVIEW, type ReviewRight } from './review-right.ts';

/** Grants read at a time: a few milliseconds, in which nothing else is answered. */
const READ_AT_ONCE = 200;
/** Of one owner. Who has issued more may have reviewers that are not told; they find the question all the same. */
const LOOKED_AT_MAX = 10_000;
const REVIEWERS_MAX = 100;

/**
 * Whom the owner of a question lets review it, as far as its grants say so now.
 *
 * @throws When this replica cannot say what stands.
 */
export const reviewersOf =
  (ports: Pick<Ports, 'fold' | 'store' | 'limits'>, mayReview: ReviewRight) =>
  async (namespaceId: string, question: EscalationQuestion): Promise<readonly Address[]> => {
    const here = await upToDate(ports);
    if (here === undefined) throw new Error('this replica could not catch up with the log in time');
    const { owner, requester } = question;
    const request = {
      resource: { namespace: REVIEW.namespace, path: [...REVIEW.path, ...addressPath(requester)], owner },
      action: REVIEW.action,
    };
    const found = new Map<string, Address>();
    let after: string | undefined;
    for (let looked = 0; looked < LOOKED_AT_MAX && found.size < REVIEWERS_MAX; looked += READ_AT_ONCE) {
      const { grants, next } = ports.fold.index.ofOwner(namespaceId, owner, { after, limit: READ_AT_ONCE });
      for (const { subject, capabilities } of grants) {
        const isMeant = capabilities.some((capability) => capabilityMatches(capability, request, { owner }));
        if (isMeant && !found.has(addressKey(subject)) && (await mayReview(here, namespaceId, subject)(question)))
          found.set(addressKey(subject), subject);
      }
      if (next === undefined) break;
      after = next;
      await pause(0);
    }
    return [...found.values()];
  };
