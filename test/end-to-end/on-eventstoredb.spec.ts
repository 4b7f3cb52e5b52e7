import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { callsOf } from '../support/many-turns.ts';
import { ALICE, AUDITOR, type TestSystem, startTestSystem } from '../support/test-system.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let system: TestSystem;

beforeAll(async () => {
  system = await startTestSystem({ eventStore: 'eventstoredb' });
  await system.letAliceRunScout();
  await system.grant('auditing', { namespace: 'sharedos', path: ['audit'], actions: ['read'] }, { to: AUDITOR });
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk' });
});
afterAll(() => system?.stop());

const read = { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } };

describe('the whole system with the log on EventStoreDB', () => {
  it('runs a turn, records it, and runs no other once its grant was revoked', async () => {
    await system.grant('notes', { path: ['notes'], actions: ['read'] });
    const { result: before } = await system.run({ calls: [read], traceId: 'before' });
    expect(callsOf(before)).toMatchObject([{ status: 'succeeded' }]);
    expect((await (await system.client(ALICE)).grants.revoke('notes')).ok).toBe(true);
    const { result: after } = await system.run({ calls: [read], traceId: 'after' });
    expect(callsOf(after)).toMatchObject([{ status: 'denied', code: 'tool_unavailable' }]);
    const records = await system.records('before', (found) => found.some(({ type }) => type === 'tool.invoked'));
    expect(records.find(({ type }) => type === 'tool.invoked')).toMatchObject({ outcome: 'succeeded' });
    expect(String(records[0]?.metadata?.['revision'])).toMatch(/^eventstoredb-/);
  });
});
