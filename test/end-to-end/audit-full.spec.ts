import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AgentStep, type RunningAgent, newTurn } from '@sharedos/client';
import type { AuditEvent } from '@sharedos/contracts';
import { freePort, waitFor } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type StreamRoom, openStreamRoom } from '../support/stream-room.ts';
import { ALICE, AUDITOR, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const PATIENCE_MS = 180_000;
const DEADLINE_MS = 60_000;
const LEASE_MS = 1_500;

let system: TestSystem;
let room: StreamRoom;
let agent: RunningAgent;
let folder: string;
let metricsPort: number;
/** What happens before the second call of a turn. */
let between: () => Promise<void> = async () => undefined;

/** Appends a line, then another: two calls of one turn. */
const decide = async ({ input, number, call, complete }: AgentStep) => {
  if (number === 1) await between();
  if (number < 2) return call('files.append', { path: ['log.txt'], content: `line ${number}\n` });
  return complete(input.type === 'tool_result' ? { status: input.result.status } : null);
};

beforeAll(async () => {
  metricsPort = await freePort();
  system = await startTestSystem({
    turnLeaseMs: LEASE_MS,
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_HEALTH_PORT: String(metricsPort) } : {}),
  });
  room = await openStreamRoom(system.stack);
  folder = await system.files(ALICE, { 'log.txt': '' });
  await system.letAliceRunScout();
  await system.grant('append', { path: ['log.txt'], actions: ['append'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const { agents } = await system.client(ALICE);
  const terms = {
    agentId: SCOUT.agentId,
    authority: ALICE,
    owner: ALICE,
    runtime: { runtime: 'remote', config: { stepTimeoutMs: 60_000 } },
  } as const;
  expect(await agents.register(terms)).toMatchObject({ ok: true });
  const running = await (await system.client(SCOUT)).agent(decide);
  if (!running.ok) throw new Error('scout does not run');
  agent = running.value;
}, PATIENCE_MS);
afterEach(async () => {
  between = async () => undefined;
  await room.empty('AUDIT');
  await room.empty('LEDGER');
});
afterAll(async () => {
  await agent?.stop();
  await room?.close();
  await system?.stop();
});

const written = (): Promise<string> => readFile(join(folder, 'log.txt'), 'utf8');
/** How many turns the executor has in its hands, as its own metrics say. */
const turnsInHand = async (): Promise<number> => {
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return Number(/^sharedos_turns_running(?:\{.*\})? (\d+)/m.exec(metrics)?.[1]);
};
const run = async (traceId: string) => (await system.run({ traceId, calls: [], options: { maxSteps: 4 } })).result;
const ended = (records: readonly AuditEvent[]): boolean => records.some(({ type }) => type === 'turn.ended');
const told = (records: readonly AuditEvent[]) =>
  records
    .filter(({ type }) => type === 'tool.invoked' || type === 'turn.ended')
    .map(({ type, outcome, reason }) => [type, outcome, ...(reason === undefined ? [] : [reason])].join(' '));

describe('a full stream of records', { timeout: PATIENCE_MS }, () => {
  it('starts no turn: it is refused before its runtime runs, and that is on record once there is room', async () => {
    const before = await written();
    await room.fill('AUDIT');
    const result = await run('full-at-start');
    expect(result).toMatchObject({ status: 'failed', error: { code: 'audit_unavailable' } });
    expect(await written()).toBe(before);
    await room.empty('AUDIT');
    expect(told(await system.records('full-at-start', ended))).toEqual([expect.stringContaining('turn.ended')]);
  });

  it('loses nothing of a turn that has begun: what it did waits in the ledger', async () => {
    between = () => room.fill('AUDIT');
    const result = await run('full-within');
    expect(result).toMatchObject({ status: 'succeeded', output: { status: 'succeeded' } });
    await room.empty('AUDIT');
    expect(told(await system.records('full-within', ended))).toEqual([
      'tool.invoked succeeded',
      'tool.invoked succeeded',
      'turn.ended succeeded',
    ]);
  });

  it('shows nobody the records, for the right to could not be recorded', async () => {
    await room.fill('AUDIT');
    const { records } = await system.client(AUDITOR);
    expect(await records.query({})).toMatchObject({
      ok: false,
      error: { kind: 'refused', error: { code: 'audit_unavailable', retryable: true } },
    });
  });
});

describe('a full ledger', { timeout: PATIENCE_MS }, () => {
  it('refuses a call before its handler runs, and the turn is ended and answered once there is room', async () => {
    const before = await written();
    between = () => room.fill('LEDGER');
    let requested = 0;
    const request = newTurn({ from: ALICE, agent: SCOUT, purpose: 'testing', traceId: 'ledger-full', options: { maxSteps: 4 } });
    const submitted = await (
      await system.client(ALICE)
    ).turns.submit(request, { onEvent: ({ type }) => void (type === 'tool.requested' && (requested += 1)) });
    if (!submitted.ok) throw new Error('the turn was not queued');
    await waitFor('the second call to be refused', async () => requested === 2 && (await turnsInHand()) === 0, DEADLINE_MS);
    await room.empty('LEDGER');
    expect(await submitted.value.result).toMatchObject({
      ok: true,
      value: { result: { status: 'cancelled', error: { code: 'turn_cancelled', retryable: false } } },
    });
    // The first call was made, and the second was not: it was never admitted, so nothing is unknown of it either.
    expect((await written()).slice(before.length)).toBe('line 0\n');
    expect(told(await system.records('ledger-full', ended))).toEqual(['tool.invoked succeeded', 'turn.ended failed turn_cancelled']);
  });
});
