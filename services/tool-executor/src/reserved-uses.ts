import type { Bus } from '@sharedos/bus';
import {
  type HeldUse,
  type Instant,
  type LedgerRecord,
  UsageHeld,
  UsageHeldReply,
  UsageRelease,
  UsageReleaseReply,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import { foldExecution, usesAdmitted } from '@sharedos/kernel';
import type { Ledger } from '@sharedos/ledger';

const ANSWER_MS = 2_000;

/** Who knows what a turn was handed out. `undefined` and `false`: nobody could say, or do it, now. */
export interface Counters {
  held(namespaceId: string, turnId: string): Promise<{ readonly epoch: string; readonly uses: readonly HeldUse[] } | undefined>;
  release(namespaceId: string, turnId: string, held: { readonly epoch: string; readonly uses: readonly HeldUse[] }): Promise<boolean>;
}

/** The counters as the authorizers keep them. */
export const countersOver = (bus: Pick<Bus, 'request'>): Counters => ({
  held: async (namespaceId, turnId) => {
    const body = { turn: turnId };
    const answer = await bus.request(namespaceSubject('usage.held', namespaceId), UsageHeld, body, UsageHeldReply, {
      timeoutMs: ANSWER_MS,
    });
    return answer.ok && answer.value.ok ? answer.value.value : undefined;
  },
  release: async (namespaceId, turnId, { epoch, uses }) => {
    const body = { epoch, turn: turnId, uses: [...uses] };
    const subject = namespaceSubject('usage.release', namespaceId);
    const answer = await bus.request(subject, UsageRelease, body, UsageReleaseReply, { timeoutMs: ANSWER_MS });
    return answer.ok && answer.value.ok;
  },
});

export interface ReleasePorts {
  readonly counters: Counters;
  readonly ledger: Pick<Ledger, 'releaseUse'>;
  readonly clock: () => Instant;
}

/**
 * Gives back what a turn was handed out and never admitted, once its records say that it is over. First in the ledger, so that a
 * claim still on its way comes too late, then in the counters, so that the next one can have it. It may be done any number of
 * times, by anybody.
 *
 * @returns Whether all is given back. If not, it is to be done again: a use would stay spent that nobody had.
 */
export const releaseReserved = async (ports: ReleasePorts, namespaceId: string, records: readonly LedgerRecord[]): Promise<boolean> => {
  const { claimed, ended } = foldExecution(records);
  if (claimed === undefined || ended === undefined) return false;
  const held = await ports.counters.held(namespaceId, claimed.turnId);
  if (held === undefined) return false;
  const admitted = new Set(usesAdmitted(records).map(nameOf));
  const uses = held.uses.filter((use) => !admitted.has(nameOf(use)));
  return uses.length === 0 || giveBack(ports, namespaceId, claimed.turnId, { epoch: held.epoch, uses });
};

/** Gives back uses that nothing will ever run on, which their turn's own records say already. */
export const giveBack = async (
  { counters, ledger, clock }: ReleasePorts,
  namespaceId: string,
  turnId: string,
  { epoch, uses }: { readonly epoch: string; readonly uses: readonly HeldUse[] },
): Promise<boolean> => {
  const at = timestampOf(clock());
  const released = await Promise.all(uses.map((use) => ledger.releaseUse(namespaceId, { at, ...use })));
  return released.every(({ ok }) => ok) && counters.release(namespaceId, turnId, { epoch, uses });
};

const nameOf = ({ grantId, ordinal }: { readonly grantId: string; readonly ordinal: number }): string => JSON.stringify([grantId, ordinal]);
