import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { turnEvidence } from '../../support/turn-evidence.ts';
import { ALICE, type TestSystem, startTestSystem } from '../../support/test-system.ts';
import { WEATHER_VARIABLE, type Weather } from './steps.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const LEASE_MS = 1_000;
const EFFECT_MS = 3_000;

let system: TestSystem;
let folder: string;
beforeAll(async () => {
  const weather: Weather = { seed: 1, troubledPerMille: 0, effectMs: EFFECT_MS };
  const slow = { NODE_OPTIONS: `--import=${new URL('./inject.ts', import.meta.url).href}`, [WEATHER_VARIABLE]: JSON.stringify(weather) };
  system = await startTestSystem({
    turnLeaseMs: LEASE_MS,
    replicas: { 'tool-executor': 2 },
    env: (service) => (service === 'tool-executor' ? slow : {}),
  });
  folder = await system.files(ALICE, { 'slow/log.txt': '' });
  await system.letAliceRunScout();
  await system.grant('slow', { path: ['slow'], actions: ['append'] });
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
