import { JSON_DEPTH_MAX, Json, PUBLIC_CONTRACTS, Path, TurnRequest, decodeBody, parseJsonText } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { bodiesUnderFire, contractsUnderFire, everyPlaceUnderFire } from './contracts-under-fire.ts';
import { HUGE_TEXT } from './document.ts';

/** Here a twentieth of the documents; `npm run fuzz -- contracts` puts all 100 000 to every contract, and as many bodies. */
const DOCUMENTS = 5_000;
const BODIES = 3_000;
/** Always the same documents, so that a failing run repeats exactly; the long run draws new ones. */
const SEED = 20_260_301;

describe('hostile documents', () => {
  it('are accepted or refused by every contract, and nothing else happens', () => {
    const { accepted, refused } = contractsUnderFire({ documents: DOCUMENTS, seed: SEED });
    const never = (counters: ReadonlyMap<string, number>) => [...counters].filter(([, times]) => times === 0).map(([name]) => name);
    // A contract that never said yes was only ever shown rubbish; one that never said no was shown nothing hostile.
    expect(never(accepted)).toEqual([]);
    expect(never(refused)).toEqual([]);
  });
  it('are refused wherever a value of another kind stands where one belongs, and never trip a rule', () => {
    expect(everyPlaceUnderFire()).toBeGreaterThan(10_000);
  });
  it('are decoded or refused as bodies, and always with the one code', () => {
    const { accepted, refused } = bodiesUnderFire({ documents: BODIES, seed: SEED });
    expect(Math.min(accepted, refused)).toBeGreaterThan(BODIES / 10);
  });
});

describe('nesting', () => {
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  it('is read down to 64 levels and no further', () => {
    expect(JSON_DEPTH_MAX).toBe(64);
    expect([64, 65].map((levels) => parseJsonText(deep(levels)).ok)).toEqual([true, false]);
    expect([64, 65].map((levels) => Json.safeParse(JSON.parse(deep(levels))).success)).toEqual([true, false]);
  });
  it('of a million levels overflows nothing', () => {
    expect(parseJsonText(deep(1_000_000)).ok).toBe(false);
    expect(parseJsonText('['.repeat(1_000_000)).ok).toBe(false);
  });
});

describe('a length', () => {
  it('that only an object claims to have is no length', () => {
    const body = new TextEncoder().encode('{"executionId":{"length":{"toString":1,"valueOf":null}}}');
    expect(decodeBody(TurnRequest, body)).toMatchObject({ ok: false, error: { code: 'invalid_request' } });
  });
  it('of a text is counted in UTF-16 units, so that 129 characters of two units are too many', () => {
    expect([128, 129].map((count) => Path.safeParse(['😀'.repeat(count)]).success)).toEqual([true, false]);
  });
});

describe('a text of ten megabytes', () => {
  it('is refused by every contract', () => {
    const contracts: Readonly<Record<string, z.ZodType>> = PUBLIC_CONTRACTS;
    for (const [name, contract] of Object.entries(contracts)) expect(contract.safeParse(HUGE_TEXT).success, name).toBe(false);
  });
  it('is refused as a body before it is read', () => {
    const body = new TextEncoder().encode(JSON.stringify(HUGE_TEXT));
    expect(decodeBody(TurnRequest, body)).toMatchObject({ ok: false, error: { code: 'invalid_request', message: /larger than/ } });
  });
});
