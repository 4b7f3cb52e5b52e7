import type { Decided } from '@sharedos/kernel';

/** The decision where a use was handed out and could not be claimed: to the caller, the counters were not there. */
export const USE_NOT_CLAIMED: Decided = { decision: { allowed: false, reasonCode: 'usage_store_unavailable' } };
