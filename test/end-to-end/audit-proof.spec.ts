import { type AuditItem, type ProofVerdict, exportHeader, exportLines, trustedKeys, verifyExport } from '@sharedos/client';
import { connectBus } from '@sharedos/bus';
import { type Result, SealedHead, auditSubject } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const TURNS = 6;
const DEADLINE_MS = 60_000;

let system: TestSystem;
beforeAll(async () => {
  system = await startTestSystem({
    replicas: { 'audit-projector': 2 },
    env: () => ({ SHAREDOS_SEAL_INTERVAL_MS: '200' }),
  });
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk' });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(() => system.stop());

const oneTurn = (traceId: string) =>
  system.run({
    traceId,
    calls: [
      { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } },
      { tool: 'files.read', arguments: { path: ['private', 'diary.md'] } },
    ],
  });

/** An export of all there is, up to the head on its last record. */
const exported = async (): Promise<readonly string[]> => {
  const { audit, namespaceId } = await system.client(AUDITOR);
  const lines = [exportHeader(namespaceId)];
  for await (const page of audit.pages()) {
    if (!page.ok) throw new Error(JSON.stringify(page.error));
    lines.push(...exportLines(page.value));
  }
  expect(lines.at(-1)).toMatch(/^{"type":"head"/);
  return lines;
};

const keys = () => trustedKeys(system.stack.sealKeys.map(({ keyId, publicKey }) => `${keyId}:${publicKey}`).join(','));
const verdictOf = (lines: readonly string[], remembered?: SealedHead): Promise<ProofVerdict> =>
  verifyExport(lines, keys(), remembered?.head);
const headsOf = (lines: readonly string[]): readonly SealedHead[] =>
  lines.flatMap((line) => {
    const { type, ...sealed } = JSON.parse(line) as { readonly type: string };
    return type === 'head' ? [SealedHead.parse(sealed)] : [];
  });

describe('the proof of the audit records', () => {
  it('holds over many turns and two projectors, of which one is killed', { timeout: 120_000 }, async () => {
    for (let turn = 0; turn < TURNS / 2; turn += 1) await oneTurn(`proof-${turn}`);
    const before = await exported();
    await system.services['audit-projector'][0]?.kill();
    for (let turn = TURNS / 2; turn < TURNS; turn += 1) await oneTurn(`proof-${turn}`);
    const after = await exported();
    expect(await verdictOf(before)).toMatchObject({ sound: true });
    const verdict = await verdictOf(after, headsOf(before).at(-1));
    expect(verdict).toMatchObject({ sound: true, value: { namespaceId: 'demo' } });
    // Nothing that was exported before is told otherwise now.
    const recordsBefore = before.filter((line) => line.includes('"type":"record"'));
    expect(after.filter((line) => line.includes('"type":"record"')).slice(0, recordsBefore.length)).toEqual(recordsBefore);
    expect(verdict.sound && verdict.value.sealed).toBe(verdict.sound && verdict.value.records);
    expect(new Set(headsOf(after).map(({ head }) => head.count)).size).toBe(headsOf(after).length);
  });

  it('names the record of which any field was changed in an export, and the first that is missing', { timeout: 120_000 }, async () => {
    const lines = await exported();
    let changed = 0;
    for (const [index, text] of lines.entries()) {
      const line = JSON.parse(text) as { readonly type: string; readonly count?: number; readonly record?: Record<string, unknown> };
      if (line.type !== 'record' || (line.count ?? 0) % 9 !== 1) continue;
      for (const field of Object.keys(line.record ?? {}).filter((name) => name !== 'namespaceId')) {
        const forged = lines.with(index, JSON.stringify({ ...line, record: { ...line.record, [field]: 'forged' } }));
        expect(await verdictOf(forged)).toMatchObject({ sound: false, fault: { kind: 'altered', first: line.count, line: index + 1 } });
        changed += 1;
      }
      expect(await verdictOf(lines.toSpliced(index, 1))).toMatchObject({ sound: false, fault: { first: line.count } });
    }
    expect(changed).toBeGreaterThan(50);
    const last = headsOf(lines).at(-1);
    const cutOff = lines.slice(
      0,
      lines.findLastIndex((line) => line.includes('"type":"record"')),
    );
    expect(await verdictOf(cutOff, last)).toMatchObject({ sound: false, fault: { kind: expect.stringMatching(/truncated|removed/) } });
  });

  it('believes no key but those it is given', async () => {
    const stranger = trustedKeys('local:MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE');
    const lines = await exported();
    expect(await verifyExport(lines, stranger)).toMatchObject({ sound: false, fault: { kind: 'bad_signature' } });
  });
});

describe('following the records', () => {
  const text = (item: Result<AuditItem, unknown>): string => {
    if (!item.ok) throw new Error(JSON.stringify(item.error));
    return item.value.kind === 'record' ? item.value.event.id : 'missed';
  };

  it('hands out each record once, from the first on and as they come, over a restart of the projector', { timeout: 120_000 }, async () => {
    const { audit } = await system.client(AUDITOR);
    const stopping = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const item of audit.records({ follow: true, signal: stopping.signal })) seen.push(text(item));
    })();
    await waitFor('history', () => seen.length > 20, DEADLINE_MS);
    for (const process of system.services['audit-projector']) if (process.running()) await process.kill();
    await oneTurn('while-away');
    await system.stack.startService('audit-projector', { env: { SHAREDOS_SEAL_INTERVAL_MS: '200' } });
    const { records } = await system.client(AUDITOR);
    const own = await waitFor(
      'the turn of that time',
      async () => {
        const found = await records.query({ traceId: 'while-away' });
        return found.ok && found.value.records.some(({ event }) => event.type === 'turn.ended') ? found.value.records : undefined;
      },
      DEADLINE_MS,
    );
    await waitFor('all of them followed', () => own.every(({ event }) => seen.includes(event.id)), DEADLINE_MS);
    stopping.abort();
    await following;
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).not.toContain('missed');
  });

  it('is refused to whoever has no grant to read the audit', async () => {
    const { audit } = await system.client(SCOUT);
    const answers: unknown[] = [];
    for await (const item of audit.records({ follow: true })) answers.push(item);
    expect(answers).toMatchObject([{ ok: false, error: { kind: 'refused', error: { code: 'no_matching_grant' } } }]);
  });

  it('names what cannot be read in the stream, leaves it out, and goes on', { timeout: 120_000 }, async () => {
    const lines: string[] = [];
    await system.stack.startService('audit-projector', { onLine: (line) => lines.push(line) });
    const { user, password, inboxPrefix } = system.stack.credentials.service('audit-projector');
    const bus = await connectBus({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix, name: 'garbage' });
    const subject = auditSubject({ namespaceId: 'demo', outcome: 'denied', type: 'tool.invoked' });
    const stored = await bus.publishStored(subject, Buffer.from('{"version":"9"}'), { timeoutMs: DEADLINE_MS });
    await bus.close();
    expect(stored.ok).toBe(true);
    await oneTurn('after-garbage');
    const found = await system.records('after-garbage', (records) => records.some(({ type }) => type === 'turn.ended'));
    expect(found.length).toBeGreaterThan(5);
    await waitFor('its name', () => lines.some((line) => line.includes('parked') && line.includes('audit record')), DEADLINE_MS);
    expect(await verdictOf(await exported())).toMatchObject({ sound: true });
  });
});
