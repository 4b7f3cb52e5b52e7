import { randomUUID } from 'node:crypto';
import { type Address, type LedgerRecord, type UseClaim, ok } from '@sharedos/contracts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { retentionRules } from './contract-retention.ts';
import { type LedgerOptions, ledgerOver } from './ledger-over.ts';
import { type Ledger, type LedgerClaim, type OperationHistory, type OperationKey, RECORD_BYTES_MAX } from './ledger.ts';
import type { RecordLog, RecordWrite, WriteOutcome } from './record-log.ts';

/** One log of records that replicas share, and what can happen to whatever keeps it. */
export interface LedgerHarness {
  /** The log as one more replica sees it. */
  log(): Promise<RecordLog>;
  /** The keeper killed and started again. */
  restart(): Promise<void>;
  stall(): Promise<void>;
  resume(): Promise<void>;
  /** Lets the log take nothing more, or again all there is room for. */
  fill(isFull: boolean): Promise<void>;
  /** Nothing after a sequence has been published yet; all has when absent. */
  holdBack(sequenceMax?: number): void;
  close(): Promise<void>;
}

const AT = '2026-01-01T12:00:00.000Z';
const HASH = 'a'.repeat(64);
/** An acknowledgement's deadline, the read-back's, and what a busy machine adds. */
const ANSWERS_WITHIN_MS = 2_500;
const QUICK: LedgerOptions = { readBackMs: 400, readTimeoutMs: 5_000 };

const alice: Address = { kind: 'human', userId: 'alice' };

const claimed = (key: OperationKey, ownerId = 'owner-1'): LedgerRecord => ({
  type: 'claimed',
  at: AT,
  ownerId,
  turnId: `turn-of-${ownerId}`,
  fingerprint: HASH,
  requester: key.requester,
  operationId: key.id,
  traceId: 'trace',
  requestSequence: 7,
});
const admitted = (callId: string): LedgerRecord => ({ type: 'admitted', at: AT, callId, audit: [] });
const settled = (callId: string, output: string): LedgerRecord => ({
  type: 'settled',
  at: AT,
  callId,
  audit: [],
  result: { status: 'succeeded', callId, tool: 'files.read', output, completedAt: AT } as unknown as Extract<
    LedgerRecord,
    { type: 'settled' }
  >['result'],
});
const interrupted = (key: OperationKey): LedgerRecord => ({
  type: 'ended',
  at: AT,
  by: 'recovery',
  audit: [],
  result: { version: '1', status: 'cancelled', executionId: key.id, traceId: 'trace', events: [], startedAt: AT, completedAt: AT },
});

/** A log that does to some writes what a network does. Every write that reaches it is counted. */
const troubled = (
  log: RecordLog,
  trouble: (write: RecordWrite, pass: () => Promise<WriteOutcome>, nth: number) => Promise<WriteOutcome>,
) => {
  const writes: RecordWrite[] = [];
  return {
    writes,
    ...log,
    write: (write: RecordWrite) => {
      writes.push(write);
      return trouble(write, () => log.write(write), writes.length);
    },
  };
};
const noAck: WriteOutcome = { kind: 'unknown', reason: 'no acknowledgement came' };

const held = async (claim: Promise<Awaited<ReturnType<Ledger['claim']>>>): Promise<LedgerClaim> => {
  const made = await claim;
  if (!made.ok) throw new Error(`the claim was refused: ${JSON.stringify(made.error)}`);
  return made.value;
};

export const ledgerContract = (adapter: string, openHarness: () => Promise<LedgerHarness>) =>
  describe(`${adapter} as a ledger`, () => {
    let harness: LedgerHarness;
    let log: RecordLog;
    let ledger: Ledger;
    let key: OperationKey;

    beforeAll(async () => {
      harness = await openHarness();
      log = await harness.log();
    });
    beforeEach(() => {
      ledger = ledgerOver(log, QUICK);
      // Every test has operations of its own.
      key = { namespaceId: 'acme', kind: 'execution', requester: alice, id: randomUUID() };
    });
    afterEach(() => harness.resume());
    afterAll(() => harness.close());

    const replica = async (): Promise<Ledger> => ledgerOver(await harness.log(), QUICK);
    const typesOf = (history: OperationHistory | undefined) => history?.records.map(({ type }) => type);
    const recorded = async (of: OperationKey = key): Promise<OperationHistory> => {
      const history = await ledger.read(of);
      if (!history.ok || history.value === undefined) throw new Error(`no history: ${JSON.stringify(history)}`);
      return history.value;
    };

    describe('claiming an operation', () => {
      it('lets the first of 32 that claim at once win, and shows its record to the others', async () => {
        const [one, two] = [ledger, await replica()];
        const claims = await Promise.all(
          Array.from({ length: 32 }, (_, index) => (index % 2 === 0 ? one : two).claim(key, claimed(key, `owner-${index}`))),
        );
        const refusals = claims.flatMap((claim) => (claim.ok ? [] : [claim.error]));
        const history = { records: [{ ownerId: `owner-${claims.findIndex((claim) => claim.ok)}` }] };
        expect(refusals).toMatchObject(Array.from({ length: 31 }, () => ({ kind: 'exists', history })));
      });

      it('is refused a second time with all that was recorded', async () => {
        const claim = await held(ledger.claim(key, claimed(key)));
        expect(await claim.append(admitted('call-1'))).toEqual(ok(undefined));
        const again = await ledger.claim(key, claimed(key, 'owner-2'));
        expect(again).toMatchObject({ ok: false, error: { kind: 'exists', history: { records: [claimed(key), admitted('call-1')] } } });
        expect(again.ok || again.error.kind !== 'exists' ? undefined : again.error.history).toEqual(await recorded());
      });

      it('may begin with the end, when it is cancelled before anybody took it', async () => {
        await held(ledger.claim(key, interrupted(key)));
        expect(await ledger.claim(key, claimed(key))).toMatchObject({
          ok: false,
          error: { kind: 'exists', history: { records: [{ type: 'ended' }] } },
        });
      });

      it('leaves an operation nobody claimed unknown', async () => {
        expect(await ledger.read(key)).toEqual(ok(undefined));
        expect(await ledger.readLast(key)).toEqual(ok(undefined));
      });

      it('keeps apart what differs only in oddities', async () => {
        const unique = randomUUID();
        const at = (namespaceId: string, requester: Address, id: string, kind: OperationKey['kind'] = 'execution'): OperationKey => ({
          namespaceId,
          kind,
          requester,
          id,
        });
        const long = 'x'.repeat(250);
        const keys: readonly OperationKey[] = [
          at('a', alice, `b.c${unique}`),
          at('a.b', alice, `c${unique}`),
          at('a', alice, `b${unique}`),
          at('b', alice, `a${unique}`),
          at('a', { kind: 'agent', agentId: 'alice' }, `b${unique}`),
          at('a', { kind: 'human', userId: 'Alice' }, `b${unique}`),
          at('a', { kind: 'human', userId: 'alice\u0301' }, `b${unique}`),
          at('a', { kind: 'service', serviceId: 'alice' }, `b${unique}`),
          at('a', alice, `b${unique}`, 'message'),
          at('a', { kind: 'human', userId: `b${unique}` }, 'alice'),
          at('a', alice, `\u{1F600}${unique}`),
          at('a', alice, `\u{1F601}${unique}`),
          at('\u{1F600}', alice, unique),
          at('*', alice, unique),
          at('>', alice, unique),
          at('~YQ', alice, unique),
          at('a', alice, `~YQ${unique}`),
          at('a', alice, `${long}1`),
          at('a', alice, `${long}2`),
          at(long, alice, unique),
          at('a', { kind: 'human', userId: long }, unique),
          at('a', alice, '","kind":"message' + unique),
        ];
        for (const one of keys) expect(await ledger.claim(one, claimed(one)), JSON.stringify(one)).toMatchObject({ ok: true });
        for (const one of keys) expect(await recorded(one)).toMatchObject({ records: [{ requester: one.requester, operationId: one.id }] });
      });
    });

    describe('writing on', () => {
      it('records what is appended at once in the order it was appended', async () => {
        const claim = await held(ledger.claim(key, claimed(key)));
        const calls = Array.from({ length: 20 }, (_, index) => `call-${index}`);
        for (const written of await Promise.all(calls.map((callId) => claim.append(admitted(callId)))))
          expect(written).toEqual(ok(undefined));
        expect((await recorded()).records.slice(1)).toEqual(calls.map(admitted));
        expect(claim.held).toBe(true);
      });

      it('gives back the largest results, and results as deep as the contracts allow', async () => {
        const claim = await held(ledger.claim(key, claimed(key)));
        const large = settled('large', 'x'.repeat(RECORD_BYTES_MAX - 1_000));
        const deep = settled('deep', JSON.parse('['.repeat(64) + ']'.repeat(64)) as string);
        expect(await claim.append(large)).toEqual(ok(undefined));
        expect(await claim.append(deep)).toEqual(ok(undefined));
        expect((await recorded()).records.slice(1)).toEqual([large, deep]);
      });

      it('refuses a record over the bound, sends nothing, and stays held for a smaller one', async () => {
        const claim = await held(ledger.claim(key, claimed(key)));
        expect(await claim.append(settled('call', 'x'.repeat(RECORD_BYTES_MAX)))).toMatchObject({
          ok: false,
          error: { kind: 'too_large' },
        });
        expect(claim.held).toBe(true);
        expect(await claim.append(settled('call', 'smaller'))).toEqual(ok(undefined));
        expect(typesOf(await recorded())).toEqual(['claimed', 'settled']);
      });

      it('says that the ledger is full, and loses the claim', async () => {
        const claim = await held(ledger.claim(key, claimed(key)));
        await harness.fill(true);
        try {
          expect(await claim.append(admitted('call'))).toEqual({ ok: false, error: { kind: 'full' } });
          expect(await ledger.claim({ ...key, id: randomUUID() }, claimed(key))).toEqual({ ok: false, error: { kind: 'full' } });
          expect(await ledger.claimUse('acme', { at: AT, grantId: randomUUID(), ordinal: 1, operation: 'operation' })).toEqual({
            ok: false,
            error: { kind: 'full' },
          });
        } finally {
          await harness.fill(false);
        }
        expect(claim.held).toBe(false);
        expect(await claim.append(admitted('later'))).toEqual({ ok: false, error: { kind: 'full' } });
        expect(typesOf(await recorded())).toEqual(['claimed']);
      });
    });

    describe('the fence', () => {
      it('refuses every record of an owner after somebody who resumed wrote, and stores none of them', async () => {
        const old = await held(ledger.claim(key, claimed(key)));
        const recovery = await replica();
        const taken = recovery.resume(key, await recorded());
        expect(await taken.append(interrupted(key))).toEqual(ok(undefined));
        expect(old.held).toBe(true);
        expect(await old.append(admitted('call-1'))).toEqual({ ok: false, error: { kind: 'fenced' } });
        expect(old.held).toBe(false);
        expect(await old.append(admitted('call-2'))).toEqual({ ok: false, error: { kind: 'fenced' } });
        expect(typesOf(await recorded())).toEqual(['claimed', 'ended']);
      });

      it('refuses an owner that was paused with its record under way', async () => {
        const { promise: paused, resolve: goOn } = Promise.withResolvers<void>();
        const slow = troubled(log, async (_, pass, nth) => {
          if (nth > 1) await paused;
          return pass();
        });
        const old = await held(ledgerOver(slow, QUICK).claim(key, claimed(key)));
        const writing = [old.append(admitted('call-1')), old.append(admitted('call-2'))];
        expect(await ledger.resume(key, await recorded()).append(interrupted(key))).toEqual(ok(undefined));
        goOn();
        for (const written of await Promise.all(writing)) expect(written).toEqual({ ok: false, error: { kind: 'fenced' } });
        expect(slow.writes).toHaveLength(2);
        expect(typesOf(await recorded())).toEqual(['claimed', 'ended']);
      });

      it('lets one of two that resume at the same revision in, though they write the same', async () => {
        await held(ledger.claim(key, claimed(key)));
        const history = await recorded();
        const resumed = [ledger.resume(key, history), (await replica()).resume(key, history)];
        const outcomes = await Promise.all(resumed.map((claim) => claim.append(interrupted(key))));
        expect(outcomes.filter(({ ok: won }) => won)).toHaveLength(1);
        expect(outcomes.filter((outcome) => !outcome.ok && outcome.error.kind === 'fenced')).toHaveLength(1);
        expect(typesOf(await recorded())).toEqual(['claimed', 'ended']);
      });

      it('lets the owner win against one that resumed at an older revision', async () => {
        const owner = await held(ledger.claim(key, claimed(key)));
        const late = ledger.resume(key, await recorded());
        expect(await owner.append(admitted('call-1'))).toEqual(ok(undefined));
        expect(await late.append(interrupted(key))).toEqual({ ok: false, error: { kind: 'fenced' } });
        expect(await owner.append(admitted('call-2'))).toEqual(ok(undefined));
      });
    });

    describe('an acknowledgement that does not come', () => {
      const losingAcksFrom = (first: number) =>
        troubled(log, async (_, pass, nth) => {
          const outcome = await pass();
          return nth < first ? outcome : noAck;
        });

      it('is success when the record is found, and the owner goes on', async () => {
        const claim = await held(ledgerOver(losingAcksFrom(1), QUICK).claim(key, claimed(key)));
        expect(await claim.append(admitted('call-1'))).toEqual(ok(undefined));
        expect(await claim.append(admitted('call-2'))).toEqual(ok(undefined));
        expect(claim.held).toBe(true);
        expect((await recorded()).records).toEqual([claimed(key), admitted('call-1'), admitted('call-2')]);
      });

      it('is success though somebody resumed and wrote behind the record; the next write is fenced', async () => {
        const lossy = troubled(log, async (_, pass, nth) => {
          const outcome = await pass();
          if (nth !== 2) return outcome;
          await ledger.resume(key, await recorded()).append(interrupted(key));
          return noAck;
        });
        const old = await held(ledgerOver(lossy, QUICK).claim(key, claimed(key)));
        expect(await old.append(admitted('call-1'))).toEqual(ok(undefined));
        expect(await old.append(admitted('call-2'))).toEqual({ ok: false, error: { kind: 'fenced' } });
        expect(typesOf(await recorded())).toEqual(['claimed', 'admitted', 'ended']);
      });

      it("is fenced when another's record is there, even one that says the same", async () => {
        const history = await held(ledger.claim(key, claimed(key))).then(() => recorded());
        const lossy = troubled(log, async () => {
          await ledger.resume(key, history).append(interrupted(key));
          return noAck;
        });
        const loser = ledgerOver(lossy, QUICK).resume(key, history);
        expect(await loser.append(interrupted(key))).toEqual({ ok: false, error: { kind: 'fenced' } });
        expect(loser.held).toBe(false);
        expect(typesOf(await recorded())).toEqual(['claimed', 'ended']);
      });

      it('is unavailable when nothing is there, and the claim is lost for good though the record may still arrive', async () => {
        let deliver: (() => Promise<WriteOutcome>) | undefined;
        const lossy = troubled(log, async (_, pass, nth) => {
          if (nth === 1) return pass();
          deliver = pass;
          return noAck;
        });
        const claim = await held(ledgerOver(lossy, QUICK).claim(key, claimed(key)));
        expect(await claim.append(admitted('call-1'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(claim.held).toBe(false);
        await deliver?.();
        expect(await claim.append(admitted('call-2'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(lossy.writes).toHaveLength(2);
        expect(typesOf(await recorded())).toEqual(['claimed', 'admitted']);
      });

      it('shows a claim that another won meanwhile', async () => {
        const lossy = troubled(log, async () => {
          await ledger.claim(key, claimed(key, 'quick'));
          return noAck;
        });
        expect(await ledgerOver(lossy, QUICK).claim(key, claimed(key, 'slow'))).toMatchObject({
          ok: false,
          error: { kind: 'exists', history: { records: [{ ownerId: 'quick' }] } },
        });
      });

      it('finds a use claimed, taken, or neither', async () => {
        const use: UseClaim = { at: AT, grantId: randomUUID(), ordinal: 1, operation: 'mine' };
        expect(await ledgerOver(losingAcksFrom(1), QUICK).claimUse('acme', use)).toEqual(ok(undefined));
        expect(await ledgerOver(losingAcksFrom(1), QUICK).claimUse('acme', { ...use, operation: 'theirs' })).toEqual({
          ok: false,
          error: { kind: 'taken', by: use },
        });
        const lost = troubled(log, async () => noAck);
        expect(await ledgerOver(lost, QUICK).claimUse('acme', { ...use, ordinal: 2 })).toMatchObject({
          ok: false,
          error: { kind: 'unavailable' },
        });
      });
    });

    describe('spending uses', () => {
      it('lets one operation have an ordinal, however often it asks, and names it to any other', async () => {
        const use: UseClaim = { at: AT, grantId: `grant ${randomUUID()}`, ordinal: 3, operation: 'mine' };
        expect(await ledger.claimUse('acme', use)).toEqual(ok(undefined));
        expect(await (await replica()).claimUse('acme', { ...use, at: '2026-01-01T12:00:09.000Z' })).toEqual(ok(undefined));
        expect(await ledger.claimUse('acme', { ...use, operation: 'theirs' })).toEqual({ ok: false, error: { kind: 'taken', by: use } });
        expect(await ledger.claimUse('other', { ...use, operation: 'theirs' })).toEqual(ok(undefined));
        expect(await ledger.claimUse('acme', { ...use, ordinal: 4, operation: 'theirs' })).toEqual(ok(undefined));
      });

      it('lets one of 32 operations that claim an ordinal at once have it', async () => {
        const [one, two] = [ledger, await replica()];
        const grantId = randomUUID();
        const claims = await Promise.all(
          Array.from({ length: 32 }, (_, index) =>
            (index % 2 === 0 ? one : two).claimUse('acme', { at: AT, grantId, ordinal: 1, operation: `operation-${index}` }),
          ),
        );
        const refusals = claims.flatMap((claim) => (claim.ok ? [] : [claim.error]));
        const by = { operation: `operation-${claims.findIndex((claim) => claim.ok)}` };
        expect(refusals).toMatchObject(Array.from({ length: 31 }, () => ({ kind: 'taken', by })));
      });

      it('lists every use of every namespace that was spent, once, and no operation', async () => {
        const grantId = `grant.${randomUUID()}`;
        const spent = ['acme', 'a.b', '\u{1F600}'].flatMap((namespaceId) =>
          [1, 2, 3].map((ordinal) => ({ namespaceId, use: { at: AT, grantId, ordinal, operation: `operation-${ordinal}` } })),
        );
        for (const { namespaceId, use } of spent) await ledger.claimUse(namespaceId, use);
        await held(ledger.claim(key, claimed(key)));
        const uses = await (await replica()).uses();
        expect(uses.ok && uses.value.filter(({ use }) => use.grantId === grantId)).toEqual(spent);
      });

      it('lists those acknowledged before it was asked, while more are spent', async () => {
        const grantId = randomUUID();
        const claimUses = (from: number) =>
          Promise.all(
            Array.from({ length: 200 }, (_, index) =>
              ledger.claimUse('acme', { at: AT, grantId, ordinal: from + index, operation: `operation-${from + index}` }),
            ),
          );
        await claimUses(1);
        const [uses] = await Promise.all([ledger.uses(), claimUses(201)]);
        const ordinals = uses.ok ? uses.value.filter(({ use }) => use.grantId === grantId).map(({ use }) => use.ordinal) : [];
        expect(ordinals.filter((ordinal) => ordinal <= 200).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: 200 }, (_, index) => index + 1),
        );
      });

      describe('and giving them back', () => {
        const useOf = (operation: string, ordinal = 1): UseClaim => ({ at: AT, grantId, ordinal, operation });
        const spentBy = async () => {
          const uses = await ledger.uses();
          return uses.ok ? uses.value.filter(({ use }) => use.grantId === grantId).map(({ use }) => use.operation) : uses;
        };
        let grantId: string;
        beforeEach(() => {
          grantId = randomUUID();
        });

        it('lets another operation have the ordinal, and lists it under that one alone', async () => {
          await ledger.claimUse('acme', useOf('mine'));
          expect(await ledger.releaseUse('acme', useOf('mine'))).toEqual(ok(undefined));
          expect(await spentBy()).toEqual([]);
          expect(await (await replica()).claimUse('acme', useOf('theirs'))).toEqual(ok(undefined));
          expect(await spentBy()).toEqual(['theirs']);
        });

        it('never lets the operation that gave it back have it again', async () => {
          await ledger.claimUse('acme', useOf('mine'));
          await ledger.releaseUse('acme', useOf('mine'));
          expect(await ledger.claimUse('acme', useOf('mine'))).toEqual({ ok: false, error: { kind: 'released' } });
          await ledger.claimUse('acme', useOf('theirs'));
          expect(await ledger.claimUse('acme', useOf('mine'))).toEqual({ ok: false, error: { kind: 'released' } });
        });

        it('shuts out a claim that is still on its way', async () => {
          expect(await ledger.releaseUse('acme', useOf('slow'))).toEqual(ok(undefined));
          expect(await (await replica()).claimUse('acme', useOf('slow'))).toEqual({ ok: false, error: { kind: 'released' } });
          expect(await ledger.claimUse('acme', useOf('quick'))).toEqual(ok(undefined));
        });

        it('changes nothing the second time, nor of what another holds', async () => {
          await ledger.claimUse('acme', useOf('mine'));
          await ledger.releaseUse('acme', useOf('mine'));
          await ledger.claimUse('acme', useOf('theirs'));
          expect(await ledger.releaseUse('acme', useOf('mine'))).toEqual(ok(undefined));
          expect(await ledger.releaseUse('acme', useOf('a third'))).toEqual(ok(undefined));
          expect(await spentBy()).toEqual(['theirs']);
          expect(await ledger.claimUse('acme', useOf('a fourth'))).toMatchObject({ ok: false, error: { kind: 'taken' } });
        });

        it('gives a released ordinal to one of 16 that claim it at once', async () => {
          await ledger.claimUse('acme', useOf('mine'));
          await ledger.releaseUse('acme', useOf('mine'));
          const other = await replica();
          const claims = await Promise.all(
            Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? ledger : other).claimUse('acme', useOf(`operation-${index}`))),
          );
          const won = claims.findIndex((claim) => claim.ok);
          expect(claims.filter((claim) => claim.ok)).toHaveLength(1);
          expect(await spentBy()).toEqual([`operation-${won}`]);
        });

        it('is found done, or not, when its acknowledgement was lost', async () => {
          await ledger.claimUse('acme', useOf('mine'));
          const ackless = troubled(log, async (_, pass) => ((await pass()).kind === 'moved' ? { kind: 'moved' } : noAck));
          expect(await ledgerOver(ackless, QUICK).releaseUse('acme', useOf('mine'))).toEqual(ok(undefined));
          await ledger.claimUse('acme', useOf('mine', 2));
          const lost = troubled(log, async () => noAck);
          expect(await ledgerOver(lost, QUICK).releaseUse('acme', useOf('mine', 2))).toMatchObject({
            ok: false,
            error: { kind: 'unavailable' },
          });
          expect(await spentBy()).toEqual(['mine']);
        });
      });

      it('throws on a name that nobody could read back', async () => {
        await expect(ledger.claimUse('acme', { at: AT, grantId: '\ud800', ordinal: 1, operation: 'operation' })).rejects.toThrow(
          RangeError,
        );
        await expect(ledger.claimUse('acme', { at: AT, grantId: ' outer ', ordinal: 1, operation: 'operation' })).rejects.toThrow(
          RangeError,
        );
        await expect(ledger.claim({ ...key, namespaceId: '' }, claimed(key))).rejects.toThrow(RangeError);
      });
    });

    describe('as time goes by', () => {
      retentionRules(() => ({
        ledger,
        replica,
        newKey: (more = {}) => ({ ...key, id: randomUUID(), ...more }),
        claimed,
        ended: interrupted,
        holdBack: (sequenceMax) => harness.holdBack(sequenceMax),
      }));
    });

    describe('when its keeper', () => {
      const within = async <T>(work: Promise<T>): Promise<T> => {
        const startedAt = performance.now();
        const answer = await work;
        expect(performance.now() - startedAt).toBeLessThan(ANSWERS_WITHIN_MS);
        return answer;
      };

      it('stops answering, is unavailable in time and loses the claims that were writing', async () => {
        const claim = await held(ledger.claim(key, claimed(key)));
        await harness.stall();
        const quick = ledgerOver(log, { readBackMs: 200, readTimeoutMs: 400 });
        const answers = await within(
          Promise.all([
            claim.append(admitted('call-1')),
            quick.claim({ ...key, id: randomUUID() }, claimed(key)),
            quick.read(key),
            quick.claimUse('acme', { at: AT, grantId: randomUUID(), ordinal: 1, operation: 'operation' }),
            quick.uses(),
          ]),
        );
        for (const answer of answers) expect(answer).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        await harness.resume();
        expect(claim.held).toBe(false);
        expect(await claim.append(admitted('call-2'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await ledger.resume(key, await recorded()).append(interrupted(key))).toEqual(ok(undefined));
      });

      it('is restarted, keeps every record, every use and every fence', async () => {
        const use: UseClaim = { at: AT, grantId: randomUUID(), ordinal: 1, operation: 'mine' };
        const claim = await held(ledger.claim(key, claimed(key)));
        await claim.append(admitted('call-1'));
        await ledger.claimUse('acme', use);
        const before = await recorded();
        await harness.restart();
        log = await harness.log();
        ledger = ledgerOver(log, QUICK);
        expect(await recorded()).toEqual(before);
        expect(await ledger.claim(key, claimed(key, 'owner-2'))).toMatchObject({ ok: false, error: { kind: 'exists' } });
        expect(await ledger.claimUse('acme', { ...use, operation: 'theirs' })).toEqual({ ok: false, error: { kind: 'taken', by: use } });
        expect(await ledger.resume(key, before).append(interrupted(key))).toEqual(ok(undefined));
        expect(await claim.append(admitted('call-2'))).toMatchObject({ ok: false, error: { kind: 'fenced' } });
        expect(typesOf(await recorded())).toEqual(['claimed', 'admitted', 'ended']);
      });
    });

    it('answers unavailable once closed, and its claims are no longer held', async () => {
      const claim = await held(ledger.claim(key, claimed(key)));
      await ledger.close();
      expect(await claim.append(admitted('call-1'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      expect(await ledger.read(key)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      expect(await ledger.uses()).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      expect(claim.held).toBe(false);
    });
  });
