import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, type TestSystem, startTestSystem } from '../support/test-system.ts';

let system: TestSystem;
beforeAll(async () => {
  system = await startTestSystem();
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk', 'private/diary.md': 'Nobody reads this' });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read', 'search'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(() => system.stop());

describe('one turn through four services', () => {
  it('reads what was granted, and is refused what was not', async () => {
    const { result } = await system.run({
      traceId: 'trace-one',
      calls: [
        { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } },
        { tool: 'files.read', arguments: { path: ['private', 'diary.md'] } },
      ],
    });
    expect(result.status).toBe('succeeded');
    expect(result).toMatchObject({
      output: {
        calls: [
          { tool: 'files.read', status: 'succeeded', output: { content: 'Buy milk' } },
          { status: 'denied', code: 'no_matching_grant' },
        ],
      },
    });
    const records = await system.records('trace-one', (found) => found.some(({ type }) => type === 'turn.ended'));
    expect(records.map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual([
      ['authority.resolved', 'succeeded', undefined],
      ['authorization.checked', 'allowed', undefined],
      ['tool.catalog.listed', 'succeeded', undefined],
      ['authorization.checked', 'allowed', undefined],
      ['tool.invoked', 'succeeded', undefined],
      ['authorization.checked', 'denied', 'no_matching_grant'],
      ['tool.invoked', 'denied', 'no_matching_grant'],
      ['turn.ended', 'succeeded', undefined],
    ]);
  });
});
