import { type TurnRequest, timestampOf } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Executors, executorsOf } from '../support/executors.ts';
import { answerOf, submit, turnOf } from '../support/many-turns.ts';
import { ALICE, type TestSystem, startTestSystem } from '../support/test-system.ts';
import { type TurnEvidence, turnEvidence } from '../support/turn-evidence.ts';

const TURN_LEASE_MS = 1_500;
const DEADLINE_MS = 30_000;
/** The shortest that a service takes. */
const HORIZON_MS = 60_000;
/** What is left of it when the request of a test is sent. */
const LEFT_MS = 5_000;

let system: TestSystem;
let executors: Executors;
let evidence: TurnEvidence;

beforeAll(async () => {
  system = await startTestSystem({ turnLeaseMs: TURN_LEASE_MS, env: () => ({ SHAREDOS_HORIZON_MS: String(HORIZON_MS) }) });
  executors = executorsOf(system.stack);
  evidence = await turnEvidence(system.stack);
  await system.files(
    ALICE,
    Object.fromEntries(
      Array.from({ length: 1_500 }, (_, leaf) => [`tree/branch-${leaf % 15}/leaf-${leaf}`, 'Nothing to find here.\n'.repeat(40)]),
    ),
  );
  await system.letAliceRunScout();
  await system.grant('search-tree', { path: ['tree'], actions: ['search'] });
});
afterAll(async () => {
  await evidence?.close();
  await system?.stop();
});

/** A turn that is still running when it is looked at. */
const long = (executionId: string): TurnRequest =>
  turnOf({
    executionId,
    calls: Array.from({ length: 60 }, () => ({ tool: 'files.search', arguments: { path: ['tree'], query: 'a needle' } })),
  });

const killInside = async (executionId: string): Promise<void> => {
  const { records } = await waitFor(
    `a call of ${executionId} to be admitted`,
    async () => {
      const found = await evidence.records(executionId);
      return found.some(({ type }) => type === 'admitted') && { records: found };
    },
    DEADLINE_MS,
  );
  await executors.ownerOf(records).kill();
};

/** What a turn that was given up must leave behind: one end, told to its requester, and the request out of the queue. */
const expectInterrupted = async (executionId: string, submitted: Awaited<ReturnType<typeof submit>>): Promise<void> => {
  expect(await answerOf(submitted)).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled', retryable: false } });
  expect((await evidence.records(executionId)).filter(({ type }) => type === 'ended')).toMatchObject([{ by: 'recovery' }]);
  await waitFor('the request to be acknowledged', async () => (await evidence.unacknowledged()) === 0, DEADLINE_MS);
};

beforeEach(() => executors.running()[0] ?? executors.start({ SHAREDOS_HORIZON_MS: String(HORIZON_MS) }), DEADLINE_MS);

describe('a turn whose executor died', () => {
  it('is ended and answered by an executor that was configured otherwise', async () => {
    const submitted = await submit(await system.client(ALICE), long('reconfigured'));
    await killInside('reconfigured');
    await executors.start({ SHAREDOS_MAX_STEPS: '17', SHAREDOS_TOOL_NAMESPACES: '' });
    await expectInterrupted('reconfigured', submitted);
    await executors.running()[0]?.stop();
  });

  it('is ended and answered after the time in which its request could be sent', async () => {
    const taken = timestampOf(Date.now() - HORIZON_MS + LEFT_MS);
    const request = { ...long('late'), requestedAt: taken };
    const submitted = await submit(await system.client(ALICE), request);
    await killInside('late');
    await waitFor('the time of the request to be over', () => Date.now() > Date.parse(taken) + HORIZON_MS, DEADLINE_MS);
    await executors.start({ SHAREDOS_HORIZON_MS: String(HORIZON_MS) });
    await expectInterrupted('late', submitted);
  });
});

describe('a request whose time is over', () => {
  it('starts nothing, and its refusal is told', async () => {
    const request = { ...long('expired'), requestedAt: timestampOf(Date.now() - 8 * 86_400_000) };
    const answer = await (await submit(await system.client(ALICE), request)).result;
    expect(answer).toMatchObject({ ok: false, error: { error: { code: 'replay_expired' } } });
    expect(await evidence.records('expired')).toEqual([]);
  });
});
