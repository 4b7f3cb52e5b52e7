import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newTurn } from '@sharedos/client';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { turnEvidence } from '../../support/turn-evidence.ts';
import { ALICE, AUDITOR, SCOUT, type TestSystem, startTestSystem } from '../../support/test-system.ts';
import { WEATHER_VARIABLE, type Weather } from './steps.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const LEASE_MS = 1_000;
const EFFECT_MS = 3_000;

let system: TestSystem;
let folder: string;
beforeAll(async () => {
  const weather: Weather = { seed: 1, troubledPerMille: 0, effectMs: EFFECT_MS, isDeaf: true };
  const slow = { NODE_OPTIONS: `--import=${new URL('./inject.ts', import.meta.url).href}`, [WEATHER_VARIABLE]: JSON.stringify(weather) };
  system = await startTestSystem({
    turnLeaseMs: LEASE_MS,
    replicas: { 'tool-executor': 2 },
    env: (service) => (service === 'tool-executor' ? slow : {}),
  });
  folder = await system.files(ALICE, { 'slow/log.txt': '', 'slow/outliving.txt': '' });
  await system.letAliceRunScout();
  await system.grant('slow', { path: ['slow'], actions: ['append'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(() => system?.stop());

describe('a tool that takes three times the lease of its turn', () => {
  it('is entered once, while its owner keeps the lease, and its turn has one claim and one end', async () => {
    const call = { tool: 'files.append', arguments: { path: ['slow', 'log.txt'], content: 'once\n' } };
    const { result } = await system.run({ executionId: 'slow', calls: [call] });
    expect(result.status).toBe('succeeded');
    expect(await readFile(join(folder, 'slow', 'log.txt'), 'utf8')).toBe('once\n');
    const evidence = await turnEvidence(system.stack);
    const records = await evidence.records('slow');
    await evidence.close();
    expect(records.map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'settled', 'ended']);
  });
});

describe('a tool that outlives its turn', () => {
  it('is entered once, and what it came to is on record behind the end, which stands', async () => {
    const alice = await system.client(ALICE);
    const call = { tool: 'files.append', arguments: { path: ['slow', 'outliving.txt'], content: 'once\n' } };
    const asked = { from: ALICE, agent: SCOUT, purpose: 'testing', executionId: 'outlived', calls: [call] };
    const request = newTurn({ ...asked, options: { timeoutMs: EFFECT_MS / 3 } });
    const submit = async () => {
      const submitted = await alice.turns.submit(request);
      const answer = submitted.ok ? await submitted.value.result : submitted;
      if (!answer.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answer.error)}`);
      return answer.value.result;
    };
    const told = await submit();
    expect(told).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled' } });

    const evidence = await turnEvidence(system.stack);
    await waitFor('the call to be settled', async () => (await evidence.lastRecord('outlived'))?.type === 'settled', 60_000);
    const records = await evidence.records('outlived');
    expect(records.map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'ended', 'settled']);
    expect(records.at(-1)).toMatchObject({ late: true, result: { status: 'succeeded', tool: 'files.append' } });
    const name = { kind: 'execution', requester: ALICE, operationId: 'outlived' } as const;
    expect(await alice.operations.show(name)).toMatchObject({ ok: true, value: { operation: { state: 'ended', unknownCalls: [] } } });

    // Asked for again, it is answered as it was, and nothing runs.
    expect(await submit()).toEqual(told);
    expect(await evidence.records('outlived')).toEqual(records);
    expect(await readFile(join(folder, 'slow', 'outliving.txt'), 'utf8')).toBe('once\n');
    await evidence.close();
    const audit = await system.records(request.message.traceId, (found) => found.at(-1)?.type === 'tool.invoked');
    expect(audit.slice(-3).map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'failed', 'turn_cancelled'],
      ['tool.invoked', 'succeeded', undefined],
    ]);
  });
});
