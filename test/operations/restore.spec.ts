import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerOf, callsOf, submit, turnOf } from '../support/many-turns.ts';
import { ALICE, type TestSystem, startTestSystem } from '../support/test-system.ts';

const append = { tool: 'files.append', arguments: { path: ['log', 'a'], content: 'x' } };
const first = turnOf({ executionId: 'before-the-copy', at: new Date().toISOString(), calls: [append] });

let folder: string;
let system: TestSystem | undefined;
const started = async (name: string): Promise<TestSystem> => (system = await startTestSystem({ dataDir: join(folder, name) }));

const facts = async ({ client }: TestSystem) => {
  const alice = await client(ALICE);
  const grants = await alice.grants.list({ role: 'issuer' });
  const turn = await alice.turns.get('before-the-copy');
  expect([grants.ok, turn.ok]).toEqual([true, true]);
  return { grants: grants.ok && grants.value, turn: turn.ok && turn.value.result };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sharedos-restore-'));
});
afterAll(async () => {
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('a system that is started from the copy of a stopped one', { timeout: 240_000 }, () => {
  it('has every grant, every answer and every use that was spent', async () => {
    const old = await started('old');
    await old.letAliceRunScout();
    await old.grant('log', { path: ['log'], actions: ['append'] }, { constraints: { maxUses: 2 } });
    await old.files(ALICE, { 'log/a': '' });
    const answer = await answerOf(await submit(await old.client(ALICE), first));
    expect(callsOf(answer).map(({ status }) => status)).toEqual(['succeeded']);
    const before = await facts(old);
    await old.stop();

    await cp(join(folder, 'old'), join(folder, 'copy'), { recursive: true });
    const copy = await started('copy');
    expect(await facts(copy)).toEqual(before);

    const alice = await copy.client(ALICE);
    // Asked again it is answered from the record: the call is not made a second time.
    expect(await answerOf(await submit(alice, first))).toEqual(answer);
    const once = async (): Promise<string | undefined> => {
      const [call] = callsOf(await answerOf(await submit(alice, turnOf({ calls: [append] }))));
      return call?.status === 'succeeded' ? call.status : 'refused';
    };
    // Redis is empty, and the ledger knows that one of two uses is spent.
    expect([await once(), await once()]).toEqual(['succeeded', 'refused']);
  });
});
