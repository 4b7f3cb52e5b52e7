import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type OperationAt, type OperationsFound, SERVICE_NAMES, type TimelineEntry, type TurnSummary } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, type CliSystem, NAMESPACE, type Ran, startCliSystem } from './cli-system.fixture.ts';

const DEADLINE_MS = 60_000;
const ATTEMPTS_MAX = 10;
const EXECUTOR = { SHAREDOS_TOOL_NAMESPACES: 'files', SHAREDOS_TURNS_AT_ONCE: '1', SHAREDOS_TURN_LEASE_MS: '1000' };

let system: CliSystem;
const sharedos = (...args: readonly string[]): Promise<Ran> => system.run(...args);
const said = (text: string): unknown => expect.stringContaining(text);

beforeAll(async () => {
  system = await startCliSystem(SERVICE_NAMES, EXECUTOR);
  const folder = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, ALICE), 'tree');
  await mkdir(folder, { recursive: true });
  for (let leaf = 0; leaf < 500; leaf += 1) await writeFile(join(folder, `leaf-${leaf}`), 'Nothing to find here.\n'.repeat(40));
  const grant = (id: string, resource: string, action: string) =>
    sharedos('grant', 'issue', '--to', 'agent:scout', '--resource', resource, '--action', action, '--id', id);
  await grant('run-scout', 'sharedos.execution:agent/scout', 'invoke');
  await grant('search-tree', 'files:tree', 'search');
  await sharedos('grant', 'issue', '--to', 'human:alice', '--resource', 'sharedos:audit', '--action', 'read', '--exact', '--id', 'audit');
}, 180_000);
afterAll(() => system?.stop());

const search = 'files.search {"path":["tree"],"query":"a needle"}';
/** A turn that does not end in the time of a test unless it is made to. Its own deadline is two minutes away. */
const submitEndless = (id: string) =>
  sharedos(
    ...['turn', 'submit', '--agent', 'scout', '--purpose', 'search', '--id', id, '--no-wait'],
    ...Array.from({ length: 16 }, () => ['--call', search]).flat(),
  );
const submitShort = (id: string) =>
  sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'search', '--id', id, '--no-wait', '--call', search);

interface Shown {
  readonly summary: TurnSummary;
  readonly timeline?: readonly TimelineEntry[];
}
const shown = (id: string) => system.json<Shown>('turn', 'show', id);
const until = (id: string, state: string) =>
  waitFor(`${id} to be ${state}`, async () => (await shown(id)).summary.state === state, DEADLINE_MS);
const insideHandler = (id: string) =>
  waitFor(`${id} to be inside a handler`, async () => (await shown(id)).timeline?.at(-1)?.what === 'admitted', DEADLINE_MS);

describe('turns on the command line', () => {
  it('are followed from another terminal, and cancelled from a third long before their deadline', { timeout: 90_000 }, async () => {
    await submitEndless('watched');
    await until('watched', 'running');
    const watched = sharedos('turn', 'watch', 'watched');
    await insideHandler('watched');
    expect(await sharedos('turn', 'cancel', 'watched')).toMatchObject({ code: 0, out: 'watched is told to stop\n' });
    const { code, out, err } = await watched;
    expect([code, err]).toEqual([1, said('watched ended as cancelled (turn_cancelled)')]);
    expect(out).toMatch(/^\S+Z +\d+ turn\.cancelled\nwatched cancelled \(turn_cancelled\), trace \S+\n$/m);
    const { summary, timeline } = await shown('watched');
    expect(summary).toMatchObject({ state: 'cancelled', code: 'turn_cancelled' });
    const [start, end] = [timeline?.[0]?.at, timeline?.at(-1)?.at].map((at) => Date.parse(at ?? ''));
    // It ended by the cancellation, and not by its deadline.
    expect((end ?? NaN) - (start ?? NaN)).toBeLessThan(120_000);
    expect(timeline?.find(({ what }) => what === 'ended')).toMatchObject({ by: 'owner' });
  });

  it('that wait are taken out of the queue', { timeout: 90_000 }, async () => {
    await submitEndless('in-front');
    await until('in-front', 'running');
    await submitShort('behind');
    expect((await sharedos('turn', 'list', '--state', 'queued')).out).toMatch(/^behind +queued +– +scout /m);
    expect(await sharedos('turn', 'cancel', 'behind')).toMatchObject({ code: 0, out: 'behind was not yet taken and never will be\n' });
    expect((await sharedos('turn', 'show', 'behind')).out).toMatch(
      /^behind cancelled \(turn_cancelled\).*\n\nAT +RECORD .*\n.* claimed .*\n.* ended /,
    );
    await sharedos('turn', 'cancel', 'in-front');
    await until('in-front', 'cancelled');
    expect(await sharedos('turn', 'cancel', 'in-front')).toMatchObject({ code: 0, out: 'in-front had ended already\n' });
  });

  it('are listed by agent, state and time, those that ended too', { timeout: 90_000 }, async () => {
    await submitShort('listed');
    await until('listed', 'succeeded');
    const listed = async (...narrowed: readonly string[]) =>
      (await system.json<{ turns: readonly TurnSummary[] }>('turn', 'list', ...narrowed)).turns.map(({ executionId }) => executionId);
    expect(await listed('--agent', 'scout', '--state', 'succeeded', '--since', '1h')).toContain('listed');
    expect(await listed('--agent', 'agent:scout')).toContain('listed');
    expect(await listed('--agent', 'other')).toEqual([]);
    expect(await listed('--since', '2999-01-01T00:00:00Z')).toEqual([]);
    expect(await sharedos('turn', 'list', '--since', 'yesterday')).toMatchObject({ code: 2, err: said('neither a time nor so long ago') });
  });

  it('are shown with what was recorded of them', async () => {
    const { timeline } = await shown('listed');
    expect(timeline?.map(({ what, tool, status }) => [what, tool, status].filter((part) => part !== undefined))).toEqual([
      ['claimed'],
      ['opened'],
      ['admitted', 'files.search'],
      ['settled', 'files.search', 'succeeded'],
      ['ended', 'succeeded'],
    ]);
  });

  it('of nobody are neither watched nor cancelled', async () => {
    for (const word of ['watch', 'cancel', 'show'])
      expect(await sharedos('turn', word, 'nowhere')).toMatchObject({ code: 1, err: said('turn_not_found') });
  });
});

describe('the ledger on the command line', () => {
  /** A turn whose executor died inside a call. One that dies between two calls leaves nothing unknown, and it is tried again. */
  const halfDone = async (): Promise<{ readonly id: string; readonly call: string }> => {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const id = `half-done-${attempt}`;
      await submitEndless(id);
      await insideHandler(id);
      await system.stack
        .services()
        .find(({ name }) => name === 'tool-executor')
        ?.kill();
      await system.stack.startService('tool-executor', { env: EXECUTOR });
      await until(id, 'cancelled');
      const [call] = (await system.json<OperationAt>('ledger', 'show', id)).operation.unknownCalls;
      if (call !== undefined) return { id, call };
    }
    throw new Error('no executor died inside a call');
  };

  it('tells what nobody can tell of, and takes the finding of an operator once', { timeout: 90_000 }, async () => {
    const { id, call } = await halfDone();
    expect((await sharedos('ledger', 'list', '--state', 'unknown')).out).toMatch(
      new RegExp(`^execution +human:alice +${id} +unknown +turn_cancelled +${call} `, 'm'),
    );
    const { out } = await sharedos('ledger', 'show', id);
    expect(out).toContain(`unknown: ${call}; once you know: sharedos ledger resolve ${id} --call ${call} --happened`);
    const found = ['ledger', 'resolve', id, '--happened', '--output', '{"matches":[]}', '--note', 'seen in the folder'];
    expect(await sharedos(...found)).toMatchObject({ code: 0, out: said(`${id} is ended, answered cancelled (turn_cancelled)`) });
    expect(await sharedos(...found, '--call', call)).toMatchObject({ code: 0 });
    expect(await sharedos('ledger', 'resolve', id, '--call', call, '--did-not-happen')).toMatchObject({
      code: 1,
      err: said('operation_resolved_otherwise'),
    });
    const resolved = [{ callId: call, outcome: 'happened', output: { matches: [] } }];
    expect(await system.json('turn', 'show', id)).toMatchObject({ result: { status: 'cancelled', metadata: { resolved } } });
    const { operations } = await system.json<OperationsFound>('ledger', 'list', '--state', 'unknown');
    expect(operations.map(({ operationId }) => operationId)).not.toContain(id);
    const records = await waitFor(
      'the act to be on record',
      async () => {
        const queried = await sharedos('records', 'query', '--operation', call, '--json');
        return queried.out.includes('operation.resolve') && { text: queried.out };
      },
      DEADLINE_MS,
    );
    expect(records.text).not.toMatch(/seen in the folder|matches/);
  });

  it('is for whoever administers it', async () => {
    for (const words of [
      ['list'],
      ['show', 'watched', '--of', 'human:alice'],
      ['resolve', 'watched', '--of', 'human:alice', '--call', 'c', '--happened'],
    ])
      expect(await sharedos('ledger', ...words, '--as', 'human:bob')).toMatchObject({ code: 1, err: said('not_an_administrator') });
    await sharedos(
      'grant',
      'issue',
      '--to',
      'human:bob',
      '--resource',
      'sharedos.admin:ledger',
      '--action',
      'read',
      '--exact',
      '--id',
      'bob-reads',
    );
    expect(await sharedos('ledger', 'show', 'watched', '--of', 'human:alice', '--as', 'human:bob')).toMatchObject({ code: 0 });
    expect(
      await sharedos('ledger', 'resolve', 'watched', '--of', 'human:alice', '--call', 'c', '--happened', '--as', 'human:bob'),
    ).toMatchObject({ code: 1, err: said('not_an_administrator') });
  });

  it.each([
    [['resolve', 'x'], 'say --happened or --did-not-happen'],
    [['resolve', 'x', '--happened', '--did-not-happen'], 'say --happened or --did-not-happen'],
    [['resolve', 'x', '--did-not-happen', '--output', '1'], 'only what happened has an --output'],
    [['resolve', 'x', '--happened', '--output', '{'], '--output is not JSON'],
    [['list', '--state', 'lost'], 'Allowed choices are running'],
  ])('is not told anything by a command line that is wrong: %j', async (words, message) =>
    expect(await sharedos('ledger', ...words)).toMatchObject({ code: 2, err: said(message) }),
  );
});
