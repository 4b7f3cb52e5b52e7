import { setImmediate } from 'node:timers/promises';
import { encodeName } from '@sharedos/contracts';
import type { GrantCounter } from './counter-session.ts';
import type { SpentUse } from './usage-store.ts';

/** Holes remembered of one grant. Those above stay counted as handed out: uses are lost rather than memory. */
export const HOLES_MAX = 100_000;

const YIELD_EVERY = 10_000;

/**
 * The counters that spent uses add up to: `highest` is the highest ordinal spent, what nobody spent below it is free again, and
 * each operation finds the ordinal it spent. An operation that a lost memory let spend two finds the lower.
 */
export async function* countersOf(uses: readonly SpentUse[]): AsyncGenerator<GrantCounter> {
  const grants = new Map<string, SpentUse[]>();
  for (const [index, use] of uses.entries()) {
    const name = encodeName(use.namespaceId, use.grantId);
    const spent = grants.get(name);
    if (spent === undefined) grants.set(name, [use]);
    else spent.push(use);
    // A million claims take a second to sort out; requests are answered in between.
    if (index % YIELD_EVERY === YIELD_EVERY - 1) await setImmediate();
  }
  for (const spent of grants.values()) yield counterOf(spent);
}

const counterOf = (spent: SpentUse[]): GrantCounter => {
  spent.sort((a, b) => a.ordinal - b.ordinal);
  const free: number[] = [];
  const operations = new Map<string, readonly [ordinal: number, turn: string | undefined]>();
  let highest = 0;
  for (const { ordinal, operation, turn } of spent) {
    for (let hole = highest + 1; hole < ordinal && free.length < HOLES_MAX; hole += 1) free.push(hole);
    highest = ordinal;
    if (!operations.has(operation)) operations.set(operation, [ordinal, turn]);
  }
  const { namespaceId, grantId } = spent[0] as SpentUse;
  return {
    namespaceId,
    grantId,
    highest,
    free,
    operations: [...operations].map(([operation, [ordinal, turn]]) => [operation, ordinal, turn] as const),
  };
};
