import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type SharedOS, newTurn } from '@sharedos/client';
import { type Address, AuditRecordMessage, SCHEMA_HEADER, decodeOwnBody, parseSubject } from '@sharedos/contracts';
import { decodeLedgerRecord } from '@sharedos/ledger';
import { waitFor } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectAs, readStream } from '../support/evidence.ts';
import { ALICE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const EXECUTORS = 2;
/** Tenants, each with what it may. */
const TENANTS = { big: {}, calm: {}, small: { turnsQueuedMax: 5 }, quick: { requestsPerSecondMax: 1 } } as const;
type Tenant = keyof typeof TENANTS;
const NAMES = Object.keys(TENANTS) as Tenant[];

let system: TestSystem;
const clients = new Map<Tenant, SharedOS>();
const of = (tenant: Tenant): SharedOS => clients.get(tenant) as SharedOS;

beforeAll(async () => {
  system = await startTestSystem({
    principals: NAMES.map((namespaceId) => ({ namespaceId, principal: ALICE })),
    roots: Object.fromEntries(NAMES.map((namespaceId): [string, readonly Address[]] => [namespaceId, [ALICE]])),
    replicas: { 'tool-executor': EXECUTORS },
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_TURNS_AT_ONCE: '1' } : {}),
  });
  for (const tenant of NAMES) {
    const client = await system.client(ALICE, tenant);
    clients.set(tenant, client);
    expect(await client.settings.set(TENANTS[tenant])).toMatchObject({ ok: true });
    for (const [id, namespace, path, action] of [
      ['run', 'sharedos.execution', ['agent', 'scout'], 'invoke'],
      ['search', 'files', ['tree'], 'search'],
    ] as const) {
      const resource = { namespace, path: [...path] };
      const issued = await client.grants.issue({ id, subject: SCOUT, capabilities: [{ resource, actions: [action], scope: 'exact' }] });
      expect(issued).toMatchObject({ ok: true });
    }
    const folder = join(system.stack.filesRoot, ...ownerFolder(tenant, ALICE), 'tree');
    await mkdir(folder, { recursive: true });
    for (let leaf = 0; leaf < 300; leaf += 1) await writeFile(join(folder, `leaf-${leaf}`), 'Nothing to find here.\n'.repeat(40));
  }
}, 120_000);
afterAll(() => system?.stop());

const search = { tool: 'files.search', arguments: { path: ['tree'], query: 'a needle' } };
const submit = async (tenant: Tenant, executionId: string, calls: readonly (typeof search)[] = []) => {
  const options = { maxSteps: 1_000, maxToolCalls: 1_000 };
  const request = newTurn({ from: ALICE, agent: SCOUT, purpose: 'testing', executionId, traceId: `trace-${executionId}`, calls, options });
  const submitted = await of(tenant).turns.submit(request);
  if (!submitted.ok) throw new Error(`not queued: ${JSON.stringify(submitted.error)}`);
  return submitted.value;
};
const stateOf = async (tenant: Tenant, executionId: string): Promise<string> => {
  const found = await of(tenant).turns.get(executionId);
  return found.ok ? found.value.summary.state : 'unknown';
};

/** Takes every place that there is, with turns of one tenant that end only when they are told to. @returns What ends them. */
const occupy = async (tenant: Tenant, prefix: string): Promise<() => Promise<void>> => {
  const ids = Array.from({ length: EXECUTORS }, (_, index) => `${prefix}-endless-${index}`);
  for (const id of ids) {
    await submit(
      tenant,
      id,
      Array.from({ length: 500 }, () => search),
    );
    await waitFor(`${id} to run`, async () => (await stateOf(tenant, id)) === 'running', DEADLINE_MS);
  }
  return async () => {
    for (const id of ids) expect(await of(tenant).turns.cancel(id)).toEqual({ ok: true, value: 'cancelling' });
  };
};

/** Turns in the order in which they were taken, with whose they were. */
const taken = async (): Promise<readonly { readonly tenant: string; readonly executionId: string }[]> => {
  const bus = await connectAs(system.stack, 'audit-projector');
  try {
    return (await readStream(bus, 'LEDGER')).flatMap((message) => {
      const subject = parseSubject(message.subject);
      const record = decodeLedgerRecord({ schema: message.header(SCHEMA_HEADER) ?? '', data: message.data });
      if (subject === undefined || !record.ok || record.value.type !== 'claimed') return [];
      return [{ tenant: subject.namespaceId, executionId: record.value.operationId }];
    });
  } finally {
    await bus.close();
  }
};

/** Records of one reason, of a tenant. */
const recorded = async (tenant: Tenant, reason: string) => {
  const bus = await connectAs(system.stack, 'audit-projector');
  try {
    return (await readStream(bus, 'AUDIT')).flatMap(({ data }) => {
      const event = decodeOwnBody(AuditRecordMessage, data);
      return event.ok && event.value.namespaceId === tenant && event.value.reason === reason ? [event.value] : [];
    });
  } finally {
    await bus.close();
  }
};

describe('one tenant beside others', () => {
  it('waits for no more than one turn at each place, however many another has queued', { timeout: 120_000 }, async () => {
    const release = await occupy('big', 'fair');
    const many = await Promise.all(Array.from({ length: 40 }, (_, index) => submit('big', `big-${index}`)));
    const one = await submit('calm', 'calm-one');
    await release();
    expect(await one.result).toMatchObject({ ok: true, value: { result: { status: 'succeeded' } } });
    for (const { result } of many) expect(await result).toMatchObject({ ok: true, value: { result: { status: 'succeeded' } } });
    const order = (await taken()).filter(({ executionId }) => !executionId.includes('endless'));
    expect(order).toHaveLength(41);
    // At each place one turn of the other at most was taken before it.
    expect(order.findIndex(({ tenant }) => tenant === 'calm')).toBeLessThanOrEqual(EXECUTORS - 1);
  });

  it(
    'with more turns waiting than it may has those in front refused, on record, and another is not touched',
    { timeout: 120_000 },
    async () => {
      const release = await occupy('small', 'over');
      const over = await Promise.all(Array.from({ length: 20 }, (_, index) => submit('small', `small-${index}`)));
      const beside = await Promise.all(Array.from({ length: 20 }, (_, index) => submit('calm', `beside-${index}`)));
      await release();
      const results = await Promise.all(over.map(({ result }) => result));
      const refused = results.flatMap((result) => (!result.ok && result.error.kind === 'refused' ? [result.error.error] : []));
      expect(refused).toMatchObject(
        Array.from({ length: 15 }, () => ({
          code: 'turns_queued_limit_exceeded',
          retryable: true,
          details: { retryAfterMs: expect.any(Number) as unknown },
        })),
      );
      expect(results.filter((result) => result.ok && result.value.result.status === 'succeeded')).toHaveLength(5);
      for (const { result } of beside) expect(await result).toMatchObject({ ok: true, value: { result: { status: 'succeeded' } } });
      const records = await recorded('small', 'turns_queued_limit_exceeded');
      expect(records.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual(Array.from({ length: 15 }, () => 'turn.ended denied'));
      // Refused, it never became a turn: the same request may be made again.
      const index = results.findIndex((result) => !result.ok);
      const again = await submit('small', `small-${index}`);
      expect(await again.result).toMatchObject({ ok: true, value: { result: { status: 'succeeded' } } });
    },
  );

  it('that asks too often is told when to ask again, and another is answered', { timeout: 120_000 }, async () => {
    const ask = (tenant: Tenant) => Promise.all(Array.from({ length: 60 }, () => of(tenant).tools.namespaces()));
    const [quick, calm] = await Promise.all([ask('quick'), ask('calm')]);
    const codes = quick.flatMap((answer) => (!answer.ok && answer.error.kind === 'refused' ? [answer.error.error] : []));
    expect(codes.length).toBeGreaterThan(0);
    for (const error of codes)
      expect(error).toMatchObject({
        code: 'request_rate_exceeded',
        retryable: true,
        details: { retryAfterMs: expect.any(Number) as unknown },
      });
    expect(calm.filter((answer) => !answer.ok)).toEqual([]);
    expect((await recorded('quick', 'request_rate_exceeded')).at(0)).toMatchObject({ type: 'admin.refused', action: 'tools.namespaces' });
    expect(await recorded('calm', 'request_rate_exceeded')).toEqual([]);
  });
});
