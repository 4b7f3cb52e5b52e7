import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Bag, type Case, readCases } from './runner/case.ts';
import { REASON_CODES, RESOURCE_NAMESPACES } from './runner/reason-codes.ts';
import { failureOf, runCases } from './runner/run-cases.ts';

const given = join(import.meta.dirname, 'cases');
const own = join(import.meta.dirname, 'own-cases');
const source = join(import.meta.dirname, '../../../shared/conformance');
const folder = await readCases(given, own);
const { cases } = folder;
const report = await runCases(folder);

describe('the conformance cases', () => {
  it.each(cases.filter(({ id }) => !report.skipped.some((skipped) => skipped.id === id)).map(({ id, title }) => [id, title]))(
    '%s: %s',
    (id) => expect(report.failed.find((failed) => failed.id === id)?.why).toBeUndefined(),
  );

  it('are all read', () => expect(folder.broken).toEqual([]));

  it('leave out only what is not offered, by name', () =>
    expect(report.skipped.map(({ id }) => id).toSorted()).toEqual(['ext.views.only-the-declared-fields']));

  it('find no code where another implementation has a different one', () => expect(report.differences).toEqual([]));

  it.runIf(existsSync(source))('are the ones that every implementation is given', async () => {
    expect(await readdir(given)).toEqual(await readdir(join(source, 'cases')));
    for (const name of ['README.md', ...(await readdir(given)).map((file) => join('cases', file))])
      expect(await readFile(join(import.meta.dirname, name), 'utf8'), name).toBe(await readFile(join(source, name), 'utf8'));
  });
});

/**
 * Codes that no case can show, because its format has nothing to bring them about with, or because they belong to what is not run.
 * Each is shown by the test that is named.
 */
const SHOWN_ELSEWHERE: Readonly<Record<string, string>> = {
  turn_draining: 'libs/runtime/src/envelope.spec.ts',
  driver_failed: 'libs/runtime/src/standard-loop.spec.ts',
  invalid_driver_decision: 'libs/runtime/src/standard-loop.spec.ts',
  audit_unavailable: 'libs/runtime/src/envelope.spec.ts',
  operation_aborted: 'libs/kernel/src/embedded/sharedos-kernel.spec.ts',
  message_requirement_resolution_failed: 'libs/kernel/src/embedded/sharedos-kernel.spec.ts',
  message_request_not_prepared: 'libs/kernel/src/embedded/sharedos-kernel.spec.ts',
};

/** Every text that an expectation wants somewhere. */
const wantedTexts = (value: unknown, into: Set<string>): void => {
  if (typeof value === 'string') into.add(value);
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) wantedTexts(member, into);
};

describe('the reason codes of the specification', async () => {
  const wanted = new Set<string>();
  for (const one of cases.filter(({ id }) => !report.skipped.some((skipped) => skipped.id === id))) wantedTexts(one.expect, wanted);

  it.each(Object.entries(REASON_CODES).flatMap(([section, codes]) => codes.map((code) => [section, code] as const)))(
    'of %s: a case wants %s, or another test is named for it',
    async (_, code) => {
      if (wanted.has(code)) return;
      const test = SHOWN_ELSEWHERE[code];
      expect(test, `no case and no test shows ${code}`).toBeDefined();
      expect(await readFile(join(import.meta.dirname, '../..', test as string), 'utf8')).toContain(code);
    },
  );

  it('are named as shown elsewhere only where no case shows them', () =>
    expect(Object.keys(SHOWN_ELSEWHERE).filter((code) => wanted.has(code))).toEqual([]));
});

describe('the resource namespaces of the specification', () => {
  const used = new Set<unknown>();
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { namespace, path } = value as Bag;
    if (Array.isArray(path)) used.add(namespace);
    for (const member of Object.values(value)) collect(member);
  };
  for (const one of cases) collect(one);
  it.each(RESOURCE_NAMESPACES)('%s has a case', (namespace) => expect(used).toContain(namespace));
});

describe('the runner', () => {
  const [any] = cases.filter(({ id }) => id.startsWith('basics.')) as [Case];
  const [wanted] = any.expect as [Bag & { step: string }];

  it.each<[string, Partial<Case>]>([
    ['an unknown operation', { steps: [{ id: 's', op: 'authorise' }], expect: [] }],
    ['an unknown field of a case', { note: 'x' } as Partial<Case>],
    ['an unknown field of the world', { world: { ...any.world, gravity: 1 } }],
    ['an unknown port that is down', { world: { ...any.world, outages: ['moon'] } }],
    ['an unknown port that is missing', { world: { ...any.world, missing: ['moon'] } }],
    ['an unknown behaviour', { world: { ...any.world, hostPolicy: { mode: 'static', behaviour: 'sulks' } } }],
    ['an unknown field of a step', { steps: any.steps.map((step) => ({ ...step, when: 'now' })) }],
    ['an unknown field of an input', { steps: any.steps.map((step) => ({ ...step, input: { ...step.input, colour: 'red' } })) }],
    ['an unknown expectation', { expect: [{ ...wanted, colour: 'red' }] }],
    ['an unknown pattern of records', { expect: [{ step: wanted.step, audit: { has: [{ colour: 'red' }] } }] }],
    ['an expectation of no step', { expect: [{ ...wanted, step: 'nowhere' }] }],
    ['an unknown profile', { profile: 'ext:telepathy' }],
    ['a turn that was never opened', { steps: any.steps.map((step) => ({ ...step, turn: 't9' })) }],
    ['a wanted value that did not come', { expect: [{ step: wanted.step, reasonCode: 'no_such_code' }] }],
    ['alternatives of which none came', { expect: [{ step: wanted.step, anyOf: [{ reasonCode: 'a' }, { reasonCode: 'b' }] }] }],
  ])('fails a case for %s', async (_, change) => expect(await failureOf({ ...any, ...change })).toBeDefined());

  it('passes the case that these were made from', async () => expect(await failureOf(any)).toBeUndefined());
});
