import type { AuditEvent, RecomputedPage, Supposition } from '@sharedos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const PATIENCE_MS = 180_000;

let system: TestSystem;
let decided: readonly AuditEvent[];
beforeAll(async () => {
  system = await startTestSystem({ replicas: { authorizer: 2 } });
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk' });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const notes = { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } };
  await system.run({ traceId: 'replayed', calls: [notes, { tool: 'files.read', arguments: { path: ['private', 'diary.md'] } }] });
  const { grants } = await system.client(ALICE);
  expect((await grants.revoke('read-notes')).ok).toBe(true);
  await system.run({ traceId: 'replayed-later', calls: [notes] });
  decided = [
    ...(await system.records('replayed', (records) => records.some(({ type }) => type === 'turn.ended'))),
    ...(await system.records('replayed-later', (records) => records.some(({ type }) => type === 'turn.ended'))),
  ].filter(({ type }) => type === 'authorization.checked');
}, PATIENCE_MS);
afterAll(() => system.stop());

const pages = async (suppose?: Supposition): Promise<readonly RecomputedPage[]> => {
  const { audit } = await system.client(AUDITOR);
  const all: RecomputedPage[] = [];
  for await (const page of audit.recompute(suppose === undefined ? { pageSize: 3 } : { suppose })) {
    if (!page.ok) throw new Error(JSON.stringify(page.error));
    all.push(page.value);
  }
  return all;
};

describe('recorded decisions of the real system', { timeout: PATIENCE_MS }, () => {
  it('come out as they were when computed again', async () => {
    const all = await pages();
    expect(all.length).toBeGreaterThan(1);
    expect(all.flatMap(({ differing }) => differing)).toEqual([]);
    expect(all.map(({ noBasis }) => noBasis)).toEqual(all.map(() => ({})));
    expect(all.reduce((sum, { same }) => sum + same, 0)).toBeGreaterThanOrEqual(decided.length);
  });

  it('would have come out otherwise without the grant, and those alone', async () => {
    const differing = (await pages({ kind: 'revoke', grantId: 'read-notes' })).flatMap((page) => page.differing);
    const byIt = decided.filter(({ grantId }) => grantId === 'read-notes').map(({ id }) => id);
    expect(byIt.length).toBeGreaterThan(0);
    expect(differing.filter(({ record }) => byIt.includes(record.event.id))).toHaveLength(byIt.length);
    expect(differing.every(({ record, turnIsRunning }) => record.event.actor.kind === SCOUT.kind && !turnIsRunning)).toBe(true);
  });

  it('are explained from the log, with the grants that nearly matched', async () => {
    const denied = decided.find(({ outcome, traceId }) => outcome === 'denied' && traceId === 'replayed');
    const { audit } = await system.client(AUDITOR);
    expect(await audit.explain({ id: denied?.id ?? '' })).toMatchObject({
      ok: true,
      value: {
        record: { event: { id: denied?.id } },
        retraced: {
          answer: { status: 'same' },
          computed: { outcome: 'denied', reason: 'no_matching_grant' },
          grants: expect.arrayContaining([{ grant: expect.objectContaining({ id: 'read-notes' }), reason: 'capability' }]),
        },
      },
    });
    expect(await audit.explain({ id: 'unknown' })).toMatchObject({ ok: false, error: { error: { code: 'record_not_found' } } });
  });

  it('lead from an operation to who issued the grant it was done by, and who took it back', async () => {
    const call = decided.find(({ grantId }) => grantId === 'read-notes')?.operationId ?? '';
    const { audit } = await system.client(AUDITOR);
    const blamed = await audit.blame({ operationId: call });
    expect(blamed).toMatchObject({
      ok: true,
      value: {
        grants: [{ links: [{ grant: { id: 'read-notes' }, issued: { principal: ALICE }, revoked: { principal: ALICE } }] }],
        acts: expect.arrayContaining([{ sequence: expect.any(Number), event: expect.objectContaining({ action: 'grant.issue' }) }]),
      },
    });
    expect(blamed.ok && blamed.value.records.map(({ event }) => event.type)).toEqual(
      expect.arrayContaining(['authorization.checked', 'tool.invoked']),
    );
  });

  it('are told to nobody without the right to read the audit', async () => {
    const { audit } = await system.client(SCOUT);
    const refused = { ok: false, error: { kind: 'refused', error: { code: 'no_matching_grant' } } };
    expect(await audit.explain({ id: decided[0]?.id ?? '' })).toMatchObject(refused);
    expect(await audit.blame({ operationId: 'any' })).toMatchObject(refused);
    for await (const page of audit.recompute()) expect(page).toMatchObject(refused);
  });
});
