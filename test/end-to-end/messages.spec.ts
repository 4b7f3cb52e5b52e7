import type { OutgoingMessage } from '@sharedos/client';
import type { Address, AuditEvent, DeliveryResult, InboxEntry } from '@sharedos/contracts';
import { type ServiceProcess, waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectAs, readOperations } from '../support/evidence.ts';
import { stopWhere } from '../support/executors.ts';
import { ALICE, AUDITOR, BOB, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 30_000;
/** Longer than a send is waited for before it counts as abandoned by its router. */
const LATER_MS = 61_000;
const PATIENT = { SHAREDOS_DEADLINE_MS: '60000' };

let system: TestSystem;
beforeAll(async () => {
  // A router that waits for the authorizer longer than any test does is met where the test wants it.
  system = await startTestSystem({ env: (service) => (service === 'messaging-router' ? PATIENT : {}) });
  const toBob = { namespace: 'sharedos.messaging', path: ['human', 'bob'], actions: ['send'], scope: 'exact' } as const;
  await system.grant('scout-to-bob', toBob);
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(() => system?.stop());

/** Scout writes to bob for alice, or as said. */
const message = (id: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  traceId: `trace-${id}`,
  receiver: BOB,
  purpose: 'testing',
  payload: { text: `hello from ${id}` },
  authority: ALICE,
  ...more,
});
const send = async (outgoing: OutgoingMessage, from: Address = SCOUT) => (await system.client(from)).messages.send(outgoing);
const receiptOf = async (outgoing: OutgoingMessage, from: Address = SCOUT): Promise<DeliveryResult> => {
  const sent = await send(outgoing, from);
  if (!sent.ok) throw new Error(`${outgoing.id} could not be sent: ${JSON.stringify(sent.error)}`);
  return sent.value;
};

/** What waits for a principal, once its router and the broker answer. */
const inboxOf = async (principal: Address): Promise<readonly InboxEntry[]> => {
  const client = await system.client(principal);
  const entries: InboxEntry[] = [];
  for (;;) {
    const { page } = await waitFor(
      'the inbox',
      async () => {
        const read = await client.messages.inbox({ limit: 100, after: entries.at(-1)?.sequence ?? 0 });
        return read.ok && { page: read.value };
      },
      DEADLINE_MS,
    );
    entries.push(...page);
    if (page.length < 100) return entries;
  }
};
const entriesOf = async (principal: Address, id: string) => (await inboxOf(principal)).filter((entry) => entry.message.id === id);

const told = ({ type, outcome, reason, grantId, messageId }: AuditEvent) => [type, outcome, reason, grantId, messageId];
const recordsOf = async (id: string) =>
  (await system.records(`trace-${id}`, (found) => found.some(({ type }) => type === 'message.sent'))).filter(
    ({ type }) => type !== 'authority.resolved',
  );

describe('a message', () => {
  it('is sent under its own decision, and both are on record without its payload', async () => {
    expect(await receiptOf(message('plain'))).toMatchObject({ status: 'accepted', messageId: 'plain' });
    const records = await recordsOf('plain');
    expect(records.map(told)).toEqual([
      ['authorization.checked', 'allowed', undefined, 'scout-to-bob', undefined],
      ['message.sent', 'succeeded', undefined, 'scout-to-bob', 'plain'],
    ]);
    expect(records[0]).toMatchObject({
      actor: SCOUT,
      authority: ALICE,
      resource: { namespace: 'sharedos.messaging', path: ['human', 'bob'] },
      action: 'send',
      operationId: 'plain',
    });
    expect(records[1]).toMatchObject({ receiver: BOB });
    expect(JSON.stringify(records)).not.toContain('hello from');
  });

  it('is in the inbox of its recipient as it was sent, and in nobody else’s', async () => {
    await receiptOf(message('private'));
    expect(await entriesOf(BOB, 'private')).toMatchObject([
      { message: { sender: SCOUT, receiver: BOB, purpose: 'testing', payload: { text: 'hello from private' }, traceId: 'trace-private' } },
    ]);
    expect([await inboxOf(ALICE), await inboxOf(SCOUT), await inboxOf(AUDITOR)]).toEqual([[], [], []]);
  });

  it('is acknowledged by its recipient alone, once', async () => {
    await receiptOf(message('taken'));
    const [entry] = await entriesOf(BOB, 'taken');
    const acknowledgedBy = async (principal: Address) => (await system.client(principal)).messages.ack(entry?.sequence ?? 0);
    expect([await acknowledgedBy(ALICE), await acknowledgedBy(SCOUT)]).toEqual([
      { ok: true, value: false },
      { ok: true, value: false },
    ]);
    expect(await entriesOf(BOB, 'taken')).toEqual([entry]);
    expect(await acknowledgedBy(BOB)).toEqual({ ok: true, value: true });
    expect(await entriesOf(BOB, 'taken')).toEqual([]);
    expect(await acknowledgedBy(BOB)).toEqual({ ok: true, value: false });
  });

  it('sent again is delivered once, and answered with the same receipt', async () => {
    const again = message('again', { createdAt: '2026-01-01T12:00:00Z' });
    const receipts = [...(await Promise.all([receiptOf(again), receiptOf(again)])), await receiptOf(again)];
    const accepted = receipts.filter(({ status }) => status === 'accepted');
    expect(accepted.length).toBeGreaterThanOrEqual(2);
    expect(new Set(accepted.map((receipt) => JSON.stringify(receipt))).size).toBe(1);
    // One that came while the first was under way is told so, and may ask again.
    expect(
      receipts
        .filter(({ status }) => status !== 'accepted')
        .every((receipt) => 'error' in receipt && receipt.error.code === 'replay_pending'),
    ).toBe(true);
    expect(await entriesOf(BOB, 'again')).toHaveLength(1);
  });
});

describe('a message is refused', () => {
  it('without a grant to send to its recipient', async () => {
    const denied = { status: 'denied', error: { code: 'no_matching_grant', retryable: false } };
    expect(await receiptOf(message('ungranted', { receiver: AUDITOR }))).toMatchObject(denied);
    expect(await inboxOf(AUDITOR)).toEqual([]);
    expect((await recordsOf('ungranted')).map(told)).toEqual([
      ['authorization.checked', 'denied', 'no_matching_grant', undefined, undefined],
      ['message.sent', 'denied', 'no_matching_grant', undefined, 'ungranted'],
    ]);
  });

  it('with another’s grant', async () => {
    expect(await receiptOf(message('borrowed'), BOB)).toMatchObject({ status: 'denied', error: { code: 'no_matching_grant' } });
    expect(await entriesOf(BOB, 'borrowed')).toEqual([]);
  });

  it('with a grant to run its recipient, or over files of the same name', async () => {
    await system.grant('scout-runs-scout', { namespace: 'sharedos.execution', path: ['agent', 'scout'], actions: ['invoke', 'send'] });
    await system.grant('scout-files', { namespace: 'files', path: ['agent', 'scout'], actions: ['send'] });
    expect(await receiptOf(message('misused', { receiver: SCOUT }))).toMatchObject({
      status: 'denied',
      error: { code: 'no_matching_grant' },
    });
    expect(await inboxOf(SCOUT)).toEqual([]);
  });

  it('once a bounded grant is spent, and only then; a repetition of what was sent spends nothing', async () => {
    await system.grant(
      'once-to-auditor',
      { namespace: 'sharedos.messaging', path: ['human', 'auditor'], actions: ['send'], scope: 'exact' },
      { constraints: { maxUses: 1 } },
    );
    const first = message('first-use', { receiver: AUDITOR, createdAt: '2026-01-01T12:00:00Z' });
    const accepted = await receiptOf(first);
    expect(accepted).toMatchObject({ status: 'accepted' });
    expect(await receiptOf(first)).toEqual(accepted);
    expect(await receiptOf(message('second-use', { receiver: AUDITOR }))).toMatchObject({
      status: 'denied',
      error: { code: 'grant_exhausted' },
    });
    expect(await receiptOf(first)).toEqual(accepted);
    expect((await inboxOf(AUDITOR)).map((entry) => entry.message.id)).toEqual(['first-use']);
    expect((await recordsOf('second-use')).map(told)).toEqual([
      ['authorization.checked', 'denied', 'grant_exhausted', undefined, undefined],
      ['message.sent', 'denied', 'grant_exhausted', undefined, 'second-use'],
    ]);
  });

  it('when it names another sender than who sends it', async () => {
    expect(await send(message('forged', { sender: ALICE }))).toMatchObject({
      ok: false,
      error: { kind: 'refused', error: { code: 'identity_mismatch', retryable: false } },
    });
    expect(await entriesOf(BOB, 'forged')).toEqual([]);
    expect((await recordsOf('forged')).map(told)).toEqual([['message.sent', 'denied', 'identity_mismatch', undefined, 'forged']]);
  });

  it('after the grant was revoked', async () => {
    await system.grant('brief', { namespace: 'sharedos.messaging', path: ['human', 'alice'], actions: ['send'], scope: 'exact' });
    expect(await receiptOf(message('before', { receiver: ALICE }))).toMatchObject({ status: 'accepted' });
    expect(await (await system.client(ALICE)).grants.revoke('brief')).toMatchObject({ ok: true });
    expect(await receiptOf(message('after', { receiver: ALICE }))).toMatchObject({
      status: 'denied',
      error: { code: 'no_matching_grant' },
    });
    expect((await inboxOf(ALICE)).map((entry) => entry.message.id)).toEqual(['before']);
  });
});

describe('a message outlives', () => {
  it('the router that took it', async () => {
    await receiptOf(message('kept-router'));
    const [router] = system.services['messaging-router'];
    await router?.kill();
    await system.stack.startService('messaging-router', { env: PATIENT });
    expect(await entriesOf(BOB, 'kept-router')).toHaveLength(1);
  });

  it('the broker that keeps it', async () => {
    await receiptOf(message('kept-broker'));
    const before = await inboxOf(BOB);
    await system.stack.nats.restart();
    expect(await inboxOf(BOB)).toEqual(before);
    expect(before.map((entry) => entry.message.id)).toContain('kept-broker');
    // All come back by themselves, and the next one is sent like any other.
    const next = message('after-broker', { createdAt: '2026-01-01T12:00:00Z' });
    await waitFor('a message to be accepted', async () => (await send(next)).ok, DEADLINE_MS);
    expect(await receiptOf(next)).toMatchObject({ status: 'accepted' });
    expect(await entriesOf(BOB, 'after-broker')).toHaveLength(1);
  });
});

describe('a router killed while it sends', () => {
  it('leaves each message delivered at most once, whatever is sent again, and one receipt for it', { timeout: 120_000 }, async () => {
    const bus = await connectAs(system.stack, 'audit-projector');
    try {
      const letters: OutgoingMessage[] = [];
      const first: ReturnType<typeof send>[] = [];
      const write = (count: number): void => {
        for (let more = 0; more < count; more += 1) {
          const letter = message(`letter-${letters.length}`, { createdAt: '2026-01-01T12:00:00Z' });
          letters.push(letter);
          first.push(send(letter));
        }
      };
      const operations = async () =>
        (await readOperations(bus)).filter(([claimed]) => claimed?.type === 'claimed' && claimed.operationId.startsWith('letter-'));
      const endingIn = async (type: string) => (await operations()).filter((records) => records.at(-1)?.type === type).length;
      const routerRunning = (): ServiceProcess => {
        const router = system.stack.services().find(({ name }) => name === 'messaging-router');
        if (router === undefined) throw new Error('no router runs');
        return router;
      };

      write(5);
      await Promise.all(first);
      // Claimed and not decided: the authorizer does not answer.
      const [authorizer] = system.services.authorizer;
      authorizer?.pause();
      write(5);
      await waitFor('five to be claimed', async () => (await endingIn('claimed')) === 5, DEADLINE_MS);
      await routerRunning().kill();
      authorizer?.resume();
      await system.stack.startService('messaging-router', { env: PATIENT });
      // Admitted, and nobody knows whether it was delivered.
      await stopWhere(
        'a send to be admitted and not ended',
        routerRunning(),
        async () => {
          if ((await endingIn('admitted')) > 0) return true;
          write(5);
          return false;
        },
        DEADLINE_MS,
      );
      await routerRunning().kill();
      const [undecided, unknown] = [await endingIn('claimed'), await endingIn('admitted')];

      // The next one is a minute on, so that what the dead ones held counts as abandoned.
      await system.stack.startService('messaging-router', { env: { ...PATIENT, SHAREDOS_CLOCK_OFFSET_MS: String(LATER_MS) } });
      const before = await Promise.all(first);
      const receipts = await Promise.all(letters.map((letter) => receiptOf(letter)));
      expect(await Promise.all(letters.map((letter) => receiptOf(letter)))).toEqual(receipts);

      const arrived = Map.groupBy(await inboxOf(BOB), (entry) => entry.message.id);
      const counted = receipts.map(({ status, messageId }, index) => ({
        status,
        copies: arrived.get(messageId)?.length ?? 0,
        toldBefore: before[index]?.ok === true ? before[index].value.status : undefined,
      }));
      expect(counted.filter(({ copies }) => copies > 1)).toEqual([]);
      expect(counted.filter(({ status, copies }) => status === 'accepted' && copies !== 1)).toEqual([]);
      expect(counted.filter(({ toldBefore, status }) => toldBefore === 'accepted' && status !== 'accepted')).toEqual([]);
      // What was merely claimed, and what was admitted and perhaps delivered: both are decided anew and handed over once.
      expect(undecided + unknown).toBeGreaterThan(5);
      expect(receipts.map(({ status }) => status)).toEqual(letters.map(() => 'accepted'));
      const ends = (await operations()).map((records) => records.filter(({ type }) => type === 'ended').length);
      expect(ends).toEqual(letters.map(() => 1));
    } finally {
      await bus.close();
    }
  });
});
