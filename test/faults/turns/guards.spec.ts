import { describe, expect, it } from 'vitest';
import { AFTER_END } from './findings.ts';
import type { StormKind } from './schedule.ts';
import type { Guard } from './steps.ts';
import { runStorm } from './storm.ts';

const STORM_MS = 900_000;

/** One guard each: where it alone stands between what befalls the system and a broken rule, and the rule that breaks without it. */
const GUARDED: readonly { readonly kind: StormKind; readonly without: Guard; readonly broken: string }[] = [
  { kind: 'taken-for-dead', without: 'fence', broken: AFTER_END },
  { kind: 'counters-rolled-back', without: 'claim', broken: 'no bounded grant and no shared budget is over its limit' },
  { kind: 'counters-forgotten', without: 'epoch', broken: 'the counters agree with the ledger' },
];

const brokenIn = async (kind: StormKind, without?: Guard): Promise<readonly string[]> => {
  const { findings } = await runStorm({ kind, seed: 1, turns: 1, without });
  return findings.filter(({ contradictions }) => contradictions.length > 0).map(({ rule }) => rule);
};

describe.each(GUARDED)('$kind', ({ kind, without, broken }) => {
  it('breaks no rule', { timeout: STORM_MS }, async () => expect(await brokenIn(kind)).toEqual([]));

  it(`breaks one without the ${without}: ${broken}`, { timeout: STORM_MS }, async () =>
    expect(await brokenIn(kind, without)).toContain(broken),
  );
});
