import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus, connectBus } from '@sharedos/bus';
import { type RunningAgent, newTurn } from '@sharedos/client';
import { type Json, type RuntimeChoice, SCHEMA_HEADER, namespaceSubject, principalSubject } from '@sharedos/contracts';
import { type ModelServer, type SpanReceiver, TOLD_BY_REFUSAL, startModelServer, startSpanReceiver, waitFor } from '@sharedos/testing';
import { connect, headers } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLANTED, type Planted, plantedIn } from '../support/planted.ts';
import { tracedTo } from '../support/replicas.ts';
import { streamsOnDisk } from '../support/streams-on-disk.ts';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;

/**
 * What each stream is there to hold; whatever is not named here, in these or in any other stream, is a leak. Results are in the ledger,
 * to be answered again, and in what is sent to the requester, messages in inboxes.
 */
const HELD: Readonly<Record<string, readonly Planted[]>> = {
  LEDGER: ['fileContent', 'toolOutput', 'toldByTool', 'agentOutput', 'agentFailure'],
  TURN_EVENTS: ['fileContent', 'toolOutput', 'agentOutput', 'agentFailure'],
  MESSAGES: ['letter'],
};
/** Requests wait in their queue; when the broker writes over one that was taken is its own affair. */
const QUEUED: readonly Planted[] = [
  'searchQuery',
  'appended',
  'unknownArgument',
  'argumentOfNoTool',
  'climbingPath',
  'turnPayload',
  'turnMetadata',
  'malformedTurn',
];

let receiver: SpanReceiver;
let models: ModelServer;
let system: TestSystem;
let outside: string;
let auditor: Bus;
const feed: string[] = [];
const closers: (() => Promise<unknown>)[] = [];
/** All that somebody could look at who may not see content, by place, once the system has stopped. */
let told: Readonly<Record<string, string>>;

const call = (tool: string, args: Readonly<Record<string, Json>> = {}) => ({ tool, arguments: args });

beforeAll(async () => {
  [receiver, models, outside] = await Promise.all([
    startSpanReceiver(),
    startModelServer(),
    mkdtemp(join(tmpdir(), `${PLANTED.outsideFolder}-`)),
  ]);
  closers.push(receiver.stop, models.stop, () => rm(outside, { recursive: true }));
  system = await startTestSystem({
    env: (service) => ({
      ...tracedTo(receiver),
      ...(service === 'audit-projector' ? { SHAREDOS_RECORDS_DB: join(outside, 'records.db'), SHAREDOS_SEAL_INTERVAL_MS: '200' } : {}),
      ...(service === 'tool-executor'
        ? {
            SHAREDOS_TOOL_NAMESPACES: 'files,vault,sharedos',
            SHAREDOS_TOOLS_FROM: join(import.meta.dirname, '../support/leaking-tools'),
            SHAREDOS_MODEL_WIRE: 'messages',
            SHAREDOS_MODEL_BASE_URL: models.url,
            SHAREDOS_MODEL_NAME: 'model-1',
            SHAREDOS_MODEL_API_KEY: PLANTED.modelKey,
          }
        : {}),
    }),
  });
  closers.push(system.stop);
  auditor = await listenAsAuditor();
  closers.push(() => auditor.close());
  await plant();
  told = await lookEverywhere();
}, 4 * DEADLINE_MS);
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

const listenAsAuditor = async (): Promise<Bus> => {
  const { user, password, inboxPrefix } = system.stack.credentials.principal(NAMESPACE, AUDITOR);
  const bus = await connectBus({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix, name: 'auditor' });
  for (const plane of ['feed.audit', 'feed.seal'] as const) {
    const listening = await bus.subscribe(
      `${namespaceSubject(plane, NAMESPACE)}.>`,
      ({ subject, data }) => void feed.push(`${subject} ${Buffer.from(data).toString()}`),
      { timeoutMs: DEADLINE_MS },
    );
    expect(listening.ok).toBe(true);
  }
  return bus;
};

/** Does everything that has content in it, well and badly. */
const plant = async (): Promise<void> => {
  await writeFile(join(outside, 'told.txt'), PLANTED.outsideContent);
  const folder = await system.files(ALICE, { 'notes/plan.md': PLANTED.fileContent, 'private/diary.md': PLANTED.outsideContent });
  await symlink(join(outside, 'told.txt'), join(folder, 'notes/way-out'));
  await mkdir(join(folder, 'notes/below'));
  await symlink(outside, join(folder, 'notes/below/folder-out'));
  await system.letAliceRunScout();
  await system.grant('notes', { path: ['notes'], actions: ['read', 'search', 'append', 'list', 'stat'] });
  await system.grant('vault', { namespace: 'vault', path: [], actions: ['read'] });
  await system.grant('letters', { namespace: 'sharedos.messaging', path: ['human', 'bob'], actions: ['send'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  await scriptedTurn();
  await letters();
  await malformed();
  await remoteTurns();
  await refusedModel();
};

const scriptedTurn = async (): Promise<void> => {
  const request = newTurn({
    from: ALICE,
    agent: SCOUT,
    purpose: 'testing',
    traceId: 'planted',
    payload: PLANTED.turnPayload,
    calls: [
      call('files.read', { path: ['notes', 'plan.md'] }),
      call('files.search', { path: ['notes'], query: PLANTED.searchQuery }),
      call('files.append', { path: ['notes', 'plan.md'], content: PLANTED.appended }),
      call('files.read', { path: ['notes', 'way-out'] }),
      call('files.read', { path: ['notes', 'below', 'folder-out', 'told.txt'] }),
      call('files.list', { path: ['notes', 'below', 'folder-out'] }),
      call('files.read', { path: ['notes', '..', '..', PLANTED.climbingPath] }),
      call('files.read', { path: ['private', 'diary.md'] }),
      call('files.read', { path: ['notes', 'plan.md'], [PLANTED.unknownArgument]: PLANTED.unknownArgument }),
      call('files.nonsense', { text: PLANTED.argumentOfNoTool }),
      ...['answers', 'throws', 'fails', 'mistakes', 'misreads', 'misjudges'].map((name) => call(`vault.${name}`)),
    ],
  });
  const submitted = await (await system.client(ALICE)).turns.submit({ ...request, metadata: { note: PLANTED.turnMetadata } });
  const answer = submitted.ok ? await submitted.value.result : submitted;
  if (!answer.ok || answer.value.result.status !== 'succeeded') throw new Error(`the turn ended ${JSON.stringify(answer)}`);
  const { calls } = answer.value.result.output as {
    readonly calls: readonly { readonly status: string; readonly code?: string }[];
  };
  // Every plant was reached: what failed failed there, and not before.
  expect(calls.map(({ status, code }) => code ?? status)).toEqual([
    'succeeded',
    'succeeded',
    'succeeded',
    ...Array.from({ length: 3 }, () => expect.any(String)),
    'invalid_tool_arguments',
    'no_matching_grant',
    'invalid_tool_arguments',
    'tool_unavailable',
    'succeeded',
    'tool_execution_failed',
    'vault_closed',
    'invalid_tool_result',
    'invalid_tool_arguments',
    expect.any(String),
  ]);
  await system.records('planted', (records) => records.some(({ type }) => type === 'turn.ended'));
};

const letters = async (): Promise<void> => {
  const { messages } = await system.client(SCOUT);
  const letter = { purpose: 'testing', authority: ALICE };
  expect(await messages.send({ ...letter, receiver: BOB, traceId: 'letter', payload: PLANTED.letter })).toMatchObject({
    value: { status: 'accepted' },
  });
  expect(await messages.send({ ...letter, receiver: AUDITOR, traceId: 'refused-letter', payload: PLANTED.refusedLetter })).toMatchObject({
    value: { status: 'denied' },
  });
  for (const traceId of ['letter', 'refused-letter'])
    await system.records(traceId, (records) => records.some(({ type }) => type === 'message.sent'));
};

/** Bodies that cannot be read are refused with a text of their own, and not with theirs. */
const malformed = async (): Promise<void> => {
  const { user, password, inboxPrefix } = system.stack.credentials.principal(NAMESPACE, ALICE);
  const raw = await connect({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix });
  const refusals: string[] = [];
  raw.subscribe(`${principalSubject('turn.refused', NAMESPACE, ALICE)}.>`, {
    callback: (_, { data }) => void refusals.push(Buffer.from(data).toString()),
  });
  const schema = (name: string) => ({ headers: ((sent) => (sent.set(SCHEMA_HEADER, name), sent))(headers()), timeout: DEADLINE_MS });
  const bodies = (planted: string): readonly string[] => [
    `{"version":"1","${planted}":`,
    JSON.stringify({ version: planted, [planted]: planted }),
  ];
  for (const body of bodies(PLANTED.malformedTurn))
    await raw.request(principalSubject('turn.request', NAMESPACE, ALICE), body, schema('turn.request/1'));
  await waitFor('both refusals', () => refusals.length >= 2, DEADLINE_MS);
  for (const verb of ['grant.issue', 'message.send', 'records.query'] as const)
    for (const body of bodies(PLANTED.malformedCommand))
      expect((await raw.request(principalSubject(verb, NAMESPACE, ALICE), body, schema(`${verb}/1`))).string()).toContain('"ok":false');
  await raw.close();
};

const register = async (runtime: RuntimeChoice): Promise<void> => {
  const { agents } = await system.client(ALICE);
  const registered = await agents.register({ agentId: SCOUT.agentId, authority: ALICE, owner: ALICE, runtime });
  expect(registered).toMatchObject({ ok: true });
};

const remoteTurns = async (): Promise<void> => {
  await register({ runtime: 'remote', config: { stepTimeoutMs: 5_000 } });
  const running = await (
    await system.client(SCOUT)
  ).agent((step) => {
    step.remember({ kept: PLANTED.agentMemory });
    const wish = step.turn.message.payload;
    if (wish === 'throw') throw new Error(PLANTED.thrownByAgent);
    return wish === 'fail' ? step.fail('agent_gave_up', PLANTED.agentFailure) : step.complete({ text: PLANTED.agentOutput });
  });
  if (!running.ok) throw new Error('scout does not run');
  const agent: RunningAgent = running.value;
  for (const [payload, status] of [
    ['complete', 'succeeded'],
    ['fail', 'failed'],
    ['throw', 'failed'],
  ] as const) {
    const traceId = `remote-${payload}`;
    expect((await system.run({ traceId, payload, calls: [] })).result.status).toBe(status);
    await system.records(traceId, (records) => records.some(({ type }) => type === 'turn.ended'));
  }
  await agent.stop();
};

/** A provider's refusal repeats what it was asked. */
const refusedModel = async (): Promise<void> => {
  await register({ runtime: 'model', config: {} });
  models.say({ status: 400 });
  expect((await system.run({ traceId: 'model', calls: [] })).result.status).toBe('failed');
  expect(models.asked[0]?.headers['x-api-key']).toBe(PLANTED.modelKey);
  await system.records('model', (records) => records.some(({ type }) => type === 'turn.ended'));
};

const lookEverywhere = async (): Promise<Readonly<Record<string, string>>> => {
  const { stack } = system;
  const services = stack.services();
  // They send their last spans, sign their last records and say their last words when they stop.
  for (const service of services) await service.stop();
  const database = (await readdir(outside)).filter((name) => name.startsWith('records.db'));
  return {
    ...Object.fromEntries([...(await streamsOnDisk(stack.dataDir))].map(([name, bytes]) => [`stream ${name}`, bytes])),
    ...Object.fromEntries(services.map((service) => [`log of ${service.name}`, service.output()])),
    spans: JSON.stringify(receiver.spans()),
    feed: feed.join('\n'),
    'read model': (await Promise.all(database.map((name) => readFile(join(outside, name), 'latin1')))).join('\n'),
  };
};

describe('what agents read, write, say and throw', () => {
  it('is in the streams that are there to hold it', () => {
    for (const [stream, names] of Object.entries(HELD))
      expect(plantedIn(told[`stream ${stream}`] ?? '')).toEqual(expect.arrayContaining([...names]));
  });

  it('is in no other stream, no feed, no read model, no line of a log and no span', () => {
    const mayHold: Readonly<Record<string, readonly Planted[]>> = { ...HELD, TURNS: QUEUED };
    const leaks = Object.entries(told).flatMap(([place, text]) =>
      plantedIn(text)
        .filter((name) => !(mayHold[place.replace('stream ', '')] ?? []).includes(name))
        .map((name) => `${name} in ${place}`),
    );
    expect(leaks).toEqual([]);
  });

  it.each(['hex', 'base64', 'base64url'] as const)('would be found in %s, too', (encoding) => {
    for (const around of ['', 'x', 'xy']) {
      const encoded = Buffer.from(`${around}${PLANTED.letter}${around}`).toString(encoding);
      expect(plantedIn(`before ${encoded} after`)).toEqual(['letter']);
    }
  });

  it('was looked for in places that do tell of it', () => {
    const telling = ['stream AUDIT', 'stream LEDGER', 'feed', 'read model', 'spans'];
    expect(telling.filter((place) => !(told[place] ?? '').includes('vault.throws'))).toEqual([]);
    expect(Object.keys(told)).toEqual(expect.arrayContaining(['stream LOG', 'stream SEALS', 'log of authorizer', 'log of tool-executor']));
    expect(Object.entries(told).filter(([, text]) => text === '')).toEqual([]);
    expect(receiver.refused()).toEqual([]);
    expect(receiver.dropped()).toBe(0);
  });

  it('is not told with the host’s own paths, or with what a provider of models said', () => {
    const places = Object.entries(told).filter(([, text]) => text.includes(system.stack.filesRoot) || text.includes(TOLD_BY_REFUSAL));
    expect(places.map(([place]) => place)).toEqual([]);
  });
});
