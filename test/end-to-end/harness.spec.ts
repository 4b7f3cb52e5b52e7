import { join } from 'node:path';
import { newTurn } from '@sharedos/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

/** The CLI of the harness's own spec: it calls over MCP what it is told to, with the official client. */
const CLI = join(import.meta.dirname, '../../libs/runtime/src/harness/cli.fixture.ts');
const HARNESSES = { 'our-codex': { vendor: 'codex', command: process.execPath, args: [CLI, 'codex'], model: 'some-model' } };

let system: TestSystem;
beforeAll(async () => {
  system = await startTestSystem({
    env: (service) =>
      service === 'tool-executor'
        ? {
            SHAREDOS_HARNESSES: JSON.stringify(HARNESSES),
            SHAREDOS_RUNTIME: 'our-codex',
            SHAREDOS_TOOL_NAMESPACES: 'files,sharedos',
            SHAREDOS_MAX_TOOL_CALLS: '10',
          }
        : {},
  });
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk', 'private/diary.md': 'Nobody reads this' });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] });
  await system.grant('ask', { namespace: 'sharedos', path: ['escalation'], actions: ['request'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(() => system.stop());

const run = async (traceId: string, script: object) => {
  const turn = newTurn({ from: ALICE, agent: SCOUT, purpose: 'testing', traceId, payload: JSON.stringify(script) });
  const submitted = await (await system.client(ALICE)).turns.submit(turn);
  if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
  const answer = await submitted.value.result;
  if (!answer.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answer.error)}`);
  const records = await system.records(traceId, (found) => found.some(({ type }) => type === 'turn.ended'));
  return { result: answer.value.result, executionId: turn.executionId, records };
};
const read = (...path: string[]) => ({ name: 'files_read', arguments: { path } });

describe('a coding CLI as an agent of the whole system', () => {
  it('reads what was granted, is refused what was not, and every call is on record', async () => {
    const calls = [read('notes', 'plan.md'), read('private', 'diary.md')];
    const { result, records } = await run('trace-harness', { calls, end: 'complete' });
    expect(result).toMatchObject({
      status: 'succeeded',
      metadata: { runtime: { id: 'sharedos.codex.mcp' }, harness: 'codex', toolshare: 'mcp', model: 'some-model' },
    });
    const { text } = (result as unknown as { readonly output: { readonly text: string } }).output;
    expect(text).toContain('Buy milk');
    expect(text).toContain('no_matching_grant');
    expect(text).not.toContain('Nobody reads this');
    const told = records.filter(({ type }) => type === 'tool.invoked');
    expect(told.map(({ tool, outcome, reason }) => [tool, outcome, reason])).toEqual([
      ['files.read', 'succeeded', undefined],
      ['files.read', 'denied', 'no_matching_grant'],
    ]);
    const { catalogHash } = result.metadata as { readonly catalogHash: string };
    expect(told.map(({ metadata }) => metadata?.['catalogHash'])).toEqual([catalogHash, catalogHash]);
  });

  it('asks for a human, does nothing more, and its ask names its execution', async () => {
    const ask = { name: 'sharedos.escalate', arguments: { reason: 'may I read the diary?' } };
    const { result, records, executionId } = await run('trace-ask', { calls: [ask, read('notes', 'plan.md')], end: 'exit' });
    expect(result).toMatchObject({
      status: 'escalated',
      escalation: { reason: 'may I read the diary?', status: 'pending' },
      metadata: { harnessOutcome: 'complete', callsAfterEscalation: 1 },
    });
    expect(records.filter(({ type }) => type === 'tool.invoked')).toEqual([]);
    expect(records.find(({ type }) => type === 'escalation.requested')).toMatchObject({ operationId: executionId, outcome: 'escalated' });
  });

  it('that ends badly is a failed turn', async () => {
    const { result } = await run('trace-bad', { end: 'exit-3' });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'harness_exited_without_outcome' } });
  });
});
