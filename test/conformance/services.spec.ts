import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Case, readCases } from './runner/case.ts';
import { type Report, failureOf, runCases } from './runner/run-cases.ts';
import { BY_DESIGN } from './services/by-design.ts';
import { type ServicesTarget, servicesTarget } from './services/target.ts';

const folder = await readCases(join(import.meta.dirname, 'cases'), join(import.meta.dirname, 'own-cases'));
const any = folder.cases.find(({ id }) => id === 'admit.an-ordinary-turn') as Case;
const [wanted] = any.expect as [Case['expect'][number]];
/** Wrong expectations of a case that passes. Each is a case of its own: no two share a world. */
const WRONG = [
  { id: 'runner.value', title: 'a wanted value that did not come', change: { expect: [{ ...wanted, status: 'failed' }] } },
  {
    id: 'runner.record',
    title: 'a wanted record that was not written',
    change: { expect: [{ step: wanted.step, audit: { has: [{ type: 'message.sent' }] } }] },
  },
  {
    id: 'runner.count',
    title: 'a record that was written more often than wanted',
    change: { expect: [{ step: wanted.step, audit: { counts: { 'turn.ended': 0 } } }] },
  },
];

let services: ServicesTarget;
let report: Report;
beforeAll(async () => {
  services = await servicesTarget([...folder.cases, ...[...WRONG.map(({ id }) => id), 'runner.again'].map((id) => ({ ...any, id }))]);
  report = await runCases(folder, services);
}, 240_000);
afterAll(() => services?.stop());

describe('the conformance cases over authorizer and tool-executor, on a real NATS and a real Redis', () => {
  it('pass, and answer what they answer in process', () => expect(report.failed).toEqual([]));

  it('say which services ran', () => expect(report.target).toBe('services'));

  it('leave out only what is named with its reason', () => {
    expect(report.passed + report.skipped.length).toBe(report.cases);
    for (const { reason } of report.skipped) expect(reason.length).toBeGreaterThan(10);
    // Half of all cases are about functions and ports that no service offers a message for; fewer than this is a loss.
    expect(report.passed).toBeGreaterThanOrEqual(166);
  });

  it('run every turn', () => {
    const turns = folder.cases.filter(({ profile }) => profile === 'envelope').map(({ id }) => id);
    expect(report.skipped.map(({ id }) => id).filter((id) => turns.includes(id))).toEqual([]);
  });

  it('are answered otherwise only where a case is named for it', () =>
    expect(report.skipped.filter(({ id }) => id in BY_DESIGN)).toHaveLength(Object.keys(BY_DESIGN).length));
});

describe('the runner over services', () => {
  it.each(WRONG.map(({ id, title, change }) => [title, { ...any, ...change, id }] as const))('fails a case for %s', async (_, one) =>
    expect(await failureOf(one, undefined, services)).toMatch(/^s1\./),
  );

  it.each<[string, Partial<Case>]>([
    ['an unknown operation', { steps: [{ id: 's', op: 'authorise' }], expect: [] }],
    ['an unknown part of the world', { world: { ...any.world, gravity: 1 } }],
    ['an unknown expectation', { expect: [{ ...wanted, colour: 'red' }] }],
  ])('never leaves a case out for %s', async (_, change) => {
    const ran = await runCases({ cases: [{ ...any, ...change }], broken: [] }, services);
    expect(ran.failed.map(({ id }) => id)).toEqual([any.id]);
    expect(ran.skipped).toEqual([]);
  });

  it('passes the case that these were made from, and fails it where it is named as answered otherwise', async () => {
    const again = { ...any, id: 'runner.again' };
    const ran = await runCases({ cases: [again], broken: [] }, { ...services, byDesign: { [again.id]: 'a reason' } });
    expect(ran.failed).toEqual([{ id: again.id, why: 'it is named as answered otherwise here, and it is not' }]);
  });
});
