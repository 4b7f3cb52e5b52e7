import type { EscalationItem } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, SCOUT, type TestSystem, startTestSystem } from '../../support/test-system.ts';

const DEADLINE_MS = 60_000;
const INJECT = new URL('./inject.ts', import.meta.url).href;

let system: TestSystem;
beforeAll(async () => {
  system = await startTestSystem({
    env: (service) =>
      service === 'authorizer'
        ? { NODE_OPTIONS: `--import=${INJECT}` }
        : service === 'tool-executor'
          ? { SHAREDOS_TOOL_NAMESPACES: 'files' }
          : {},
  });
  await system.files(ALICE, { 'plan.md': 'milk' });
  await system.letAliceRunScout();
  await system.grant('read-log', { path: ['log.md'], actions: ['read'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  expect(await (await system.client(ALICE)).settings.set({ asksAboutRefusedCalls: true })).toMatchObject({ ok: true });
}, 2 * DEADLINE_MS);
afterAll(() => system?.stop());

const read = async () => (await system.run({ calls: [{ tool: 'files.read', arguments: { path: ['plan.md'] } }] })).result;
const item = async (): Promise<EscalationItem | undefined> => {
  const listed = await (await system.client(ALICE)).escalations.list();
  return listed.ok ? listed.value.escalations[0] : undefined;
};

describe('an authorizer that is killed between the grant of an approval and its answer', () => {
  it('leaves an approval that others finish, once, and that whoever gave it hears', { timeout: 3 * DEADLINE_MS }, async () => {
    expect(JSON.stringify(await read())).toContain('no_matching_grant');
    const asked = await item();
    const id = asked?.question.id ?? '';
    const alice = await system.client(ALICE);

    expect(await alice.escalations.resolve(id, { answer: 'approve' }, 'approve-once')).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
    expect(await system.services.authorizer[0]?.exited).toMatchObject({ signal: 'SIGKILL' });

    await Promise.all([system.stack.startService('authorizer'), system.stack.startService('authorizer')]);
    const finished = await waitFor(
      'the approval',
      async () => {
        const found = await item();
        return found?.status === 'approved' && found;
      },
      DEADLINE_MS,
    );
    expect(finished.grant).toMatchObject({ subject: SCOUT, constraints: { maxUses: 1 } });
    expect(await alice.escalations.resolve(id, { answer: 'approve' }, 'approve-once')).toMatchObject({
      ok: true,
      value: { escalation: { status: 'approved', grant: { id: finished.grant?.id ?? '' } } },
    });
    expect(await alice.escalations.resolve(id, { answer: 'approve' })).toMatchObject({
      ok: false,
      error: { error: { code: 'escalation_answered' } },
    });

    // One grant and one answer are in the log, and whoever records them makes the same two records.
    const held = await (await system.client(SCOUT)).grants.list({ role: 'subject' });
    const ofQuestions = held.ok ? held.value.grants.filter(({ metadata }) => metadata?.['escalationId'] === id) : [];
    expect(ofQuestions).toHaveLength(1);
    const auditor = await system.client(AUDITOR);
    const acts = await waitFor(
      'both acts on record',
      async () => {
        const found = await auditor.records.query({ type: 'admin.changed', limit: 100 });
        const ours = found.ok ? found.value.records.filter(({ event }) => event.operationId === 'approve-once') : [];
        const byId = new Map(ours.map(({ event }) => [event.id, event.action]));
        return byId.size >= 2 && byId;
      },
      DEADLINE_MS,
    );
    expect(acts.size).toBe(2);
    expect(new Set(acts.values())).toEqual(new Set(['grant.issue', 'escalation.resolve']));

    expect(JSON.stringify(await read())).toContain('milk');
    expect(JSON.stringify(await read())).toContain('grant_exhausted');
  });
});
