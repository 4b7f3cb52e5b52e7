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
  readonly ledger: Pick<Ledger, 'releaseUse' | 'uses'>;
  readonly clock: () => Instant;
}

/**
 * Gives back what a turn was handed out and never admitted, once its records say that it is over. First in the ledger, so that a
 * claim still on its way comes too late, then in the counters, so that the next one can have it. It may be done any number of
 * times, by anybody.
 *
 * What was claimed is looked for in the ledger as well: counters that went back in time have forgotten who held what. That reads
 * every claim there is, and is done only for a turn that was cut short.
 *
 * @returns Whether all is given back. If not, it is to be done again: a use would stay spent that nobody had.
 */
export const releaseReserved = async (ports: ReleasePorts, namespaceId: string, records: readonly LedgerRecord[]): Promise<boolean> => {
  const { claimed, ended } = foldExecution(records);
  if (claimed === undefined || ended === undefined) return false;
  const held = await ports.counters.held(namespaceId, claimed.turnId);
  if (held === undefined) return false;
  const claims = await allUses(ports.ledger);
  if (!claims.ok) return false;
  const claimedByTurn = claims.value.filter(({ namespaceId: of, use }) => of === namespaceId && use.turn === claimed.turnId);
  const admitted = new Set(usesAdmitted(records).map(nameOf));
  const handedOut = new Map([...claimedByTurn.map(({ use }) => heldUse(use)), ...held.uses].map((use) => [nameOf(use), use]));
  const uses = [...handedOut].flatMap(([name, use]) => (admitted.has(name) ? [] : [use]));
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

const heldUse = ({ grantId, ordinal, operation }: HeldUse): HeldUse => ({ grantId, ordinal, operation });

type AllUses = ReturnType<Ledger['uses']>;
const reading = new WeakMap<object, { readonly now: AllUses; next?: AllUses | undefined }>();

/** Every claim there is. Many that ask while one is read wait for the next, together: they must not get one begun before. */
const allUses = (ledger: Pick<Ledger, 'uses'>): AllUses => {
  const current = reading.get(ledger);
  if (current !== undefined) {
    current.next ??= current.now.then(() => begin(ledger));
    return current.next;
  }
  return begin(ledger);
};

const begin = (ledger: Pick<Ledger, 'uses'>): AllUses => {
  const read = { now: ledger.uses() };
  reading.set(ledger, read);
  void read.now.finally(() => {
    if (reading.get(ledger) === read) reading.delete(ledger);
  });
  return read.now;
};
