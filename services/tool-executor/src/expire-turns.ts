import { pause } from '@sharedos/bus';
import type { Instant } from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';

export interface ExpiryOptions {
  readonly clock: () => Instant;
  /** How long after its end a turn is answered as it was. */
  readonly horizonMs: number;
  /** How far clocks may be apart: nobody's may find a request fresh whose turn has expired here. */
  readonly skewMs: number;
  /** How often the ledger is looked through. */
  readonly everyMs: number;
  /** Something was done, or could not be. */
  readonly onPass: (pass: { readonly expired: number; readonly trouble?: string }) => void;
}

const TURNS_AT_ONCE = 200;

/**
 * Lets turns of the ledger expire that ended longer ago than a request may be sent again: then they are known by their names alone.
 * Every executor does it, each at its own pace, and it makes no difference who does.
 *
 * @returns Ends it, once what is under way is done.
 */
export const keepExpiring = (ledger: Pick<Ledger, 'expire'>, options: ExpiryOptions): { stop(): Promise<void> } => {
  const { clock, horizonMs, skewMs, everyMs, onPass } = options;
  const stopping = new AbortController();
  const pass = async (): Promise<void> => {
    let expired = 0;
    for (let more = true; more && !stopping.signal.aborted;) {
      const done = await ledger.expire(clock() - horizonMs - skewMs, TURNS_AT_ONCE);
      if (!done.ok) return onPass({ expired, trouble: done.error.reason });
      expired += done.value.expired;
      ({ more } = done.value);
    }
    if (expired > 0) onPass({ expired });
  };
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await pass();
      await pause(everyMs, stopping.signal);
    }
  })();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
};
