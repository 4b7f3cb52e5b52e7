import { randomBytes } from 'node:crypto';
import { AuthorityClient } from '@sharedos/bus';
import { newTurn } from '@sharedos/client';
import { type ExecutionResult, SERVICE_NAMES } from '@sharedos/contracts';
import { SPAN, type Telemetry, startTelemetry, withSpan } from '@sharedos/telemetry';
import { type ReceivedSpan, type SpanReceiver, freePort, startSpanReceiver } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectAs, readAudit, readOperations } from '../support/evidence.ts';
import { tracedTo } from '../support/replicas.ts';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 30_000;

/** What must turn up nowhere but in the results themselves; one of a kind each, so that whatever leaks says what it was. */
const MARKERS = {
  fileContent: 'marker-file-content-6f1c',
  searchQuery: 'marker-search-query-6f1c',
  appended: 'marker-appended-6f1c',
  created: 'marker-created-6f1c',
  refusedArgument: 'marker-refused-argument-6f1c',
  payload: 'marker-turn-payload-6f1c',
  metadata: 'marker-turn-metadata-6f1c',
  messagePayload: 'marker-message-payload-6f1c',
} as const;
const TOKEN_SECRET = randomBytes(24).toString('base64url');
/** How every turn token begins: its first claim, encoded. */
const TOKEN_START = Buffer.from('{"admittedAt":"').toString('base64url');

let receiver: SpanReceiver;
let telemetry: Telemetry;
let system: TestSystem;
let trace: readonly ReceivedSpan[];
let result: ExecutionResult;
const events: string[] = [];

beforeAll(async () => {
  receiver = await startSpanReceiver();
  const traced = tracedTo(receiver);
  Object.assign(process.env, traced);
  telemetry = await startTelemetry({ service: 'client', instance: 'test', version: '0.1.0' });
  system = await startTestSystem({
    env: (service) => (service === 'authorizer' ? { ...traced, SHAREDOS_TOKEN_SECRET: TOKEN_SECRET } : traced),
  });
  await system.files(ALICE, {
    'notes/plan.md': `Buy milk. ${MARKERS.fileContent}\n`,
    'log/today': '',
    'private/diary.md': MARKERS.fileContent,
  });
  await system.letAliceRunScout();
  await system.grant('notes', { path: ['notes'], actions: ['read', 'search', 'create'] });
  await system.grant('log', { path: ['log'], actions: ['append'] }, { constraints: { maxUses: 1 } });
  await system.grant('letters', { namespace: 'sharedos.messaging', path: ['human', 'bob'], actions: ['send'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const sent = await withSpan('letter', {}, async () =>
    (await system.client(SCOUT)).messages.send({ receiver: BOB, purpose: 'testing', authority: ALICE, payload: MARKERS.messagePayload }),
  );
  expect(sent).toMatchObject({ ok: true, value: { status: 'accepted' } });
  ({ result, trace } = await tracedTurn());
});
afterAll(async () => {
  await system?.stop();
  await telemetry?.shutdown();
  await receiver?.stop();
  for (const name of Object.keys(tracedTo({ url: '' } as SpanReceiver))) delete process.env[name];
});

/** One turn with a call of every kind, and all its spans. */
const tracedTurn = async (): Promise<{ result: ExecutionResult; trace: readonly ReceivedSpan[] }> => {
  const request = newTurn({
    from: ALICE,
    agent: SCOUT,
    purpose: 'testing',
    executionId: 'traced',
    traceId: 'trace-traced',
    payload: MARKERS.payload,
    calls: [
      { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } },
      { tool: 'files.search', arguments: { path: ['notes'], query: MARKERS.searchQuery } },
      { tool: 'files.create', arguments: { path: ['notes', 'new.md'], content: MARKERS.created } },
      { tool: 'files.append', arguments: { path: ['log', 'today'], content: MARKERS.appended } },
      { tool: 'files.read', arguments: { path: ['private', 'diary.md'] } },
      { tool: 'files.read', arguments: { path: ['notes', 'plan.md'], [MARKERS.refusedArgument]: MARKERS.refusedArgument } },
      { tool: 'files.append', arguments: { path: ['log', 'today'], content: MARKERS.appended } },
      { tool: 'files.nonsense', arguments: { text: MARKERS.refusedArgument } },
    ],
  });
  const submitted = await (
    await system.client(ALICE)
  ).turns.submit({ ...request, metadata: { note: MARKERS.metadata } }, { onEvent: (event) => events.push(JSON.stringify(event)) });
  if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
  const answer = await submitted.value.result;
  if (!answer.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answer.error)}`);
  const spans = await receiver.waitFor((all) => {
    const ours = traceOf(all, 'traced');
    // Opening, two records of each call that ran, one of each that was refused, and the end.
    return (
      ours.filter(({ name }) => name === SPAN.auditForward).length >= 1 + 4 * 2 + 4 + 1 &&
      ours.every((span) => parentsOf(ours, span) !== undefined)
    );
  }, DEADLINE_MS);
  return { result: answer.value.result, trace: traceOf(spans, 'traced') };
};

/** All spans of the trace in which the turn of an execution was. */
const traceOf = (spans: readonly ReceivedSpan[], executionId: string): readonly ReceivedSpan[] => {
  const turn = spans.find(({ name, attributes }) => name === SPAN.turn && attributes['sharedos.execution.id'] === executionId);
  return turn === undefined ? [] : spans.filter(({ traceId }) => traceId === turn.traceId);
};

/** `service name` of a span and of all above it, up to the root; `undefined` when one of them is missing. */
const parentsOf = (spans: readonly ReceivedSpan[], span: ReceivedSpan): readonly string[] | undefined => {
  const here = `${span.service} ${span.name}`;
  if (span.parentSpanId === undefined) return [here];
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  const above = parent === undefined ? undefined : parentsOf(spans, parent);
  return above === undefined ? undefined : [here, ...above];
};

/** Every different way in which a span of that name hangs in the trace. */
const placesOf = (name: string): readonly string[] => {
  const found = trace.filter((span) => span.name === name).map((span) => (parentsOf(trace, span) ?? ['a parent is missing']).join(' < '));
  return [...new Set(found)].sort();
};

const CONSUMED = 'tool-executor turn.request < client turn.submit';
const TURN = `tool-executor envelope.turn < ${CONSUMED}`;
const CALL = `tool-executor kernel.tool.invoke < tool-executor envelope.tool.mediate < ${TURN}`;

describe('one turn is one trace', () => {
  it('that begins with the client and has every service in it', () => {
    expect(trace.filter(({ parentSpanId }) => parentSpanId === undefined).map(({ service, name, kind }) => [service, name, kind])).toEqual([
      ['client', 'turn.submit', 'producer'],
    ]);
    expect([...new Set(trace.map(({ service }) => service))].sort()).toEqual(['audit-projector', 'authorizer', 'client', 'tool-executor']);
    expect(receiver.refused()).toEqual([]);
    expect(receiver.dropped()).toBe(0);
  });

  it('in which the executor takes the request under the client’s submission', () => {
    expect(placesOf('turn.request')).toEqual([CONSUMED]);
    expect(trace.find(({ name }) => name === 'turn.request')).toMatchObject({
      kind: 'consumer',
      attributes: { 'messaging.system': 'nats' },
    });
    expect(placesOf(SPAN.turn)).toEqual([TURN]);
  });

  it('in which authority is loaded and the catalogue discovered by the authorizer, for the turn', () => {
    expect(placesOf(SPAN.authorityLoad)).toEqual([`authorizer kernel.authority.load < authorizer authority.open < ${TURN}`]);
    expect(placesOf(SPAN.toolCatalogue)).toEqual([`tool-executor kernel.tool.catalogue < ${TURN}`]);
    expect(placesOf(SPAN.toolDiscover)).toEqual([
      `authorizer kernel.tool.discover < authorizer authority.reach < tool-executor kernel.tool.catalogue < ${TURN}`,
    ]);
  });

  it('in which each call is mediated, then decided by the authorizer, then handled', () => {
    expect(placesOf(SPAN.toolMediate)).toEqual([`tool-executor envelope.tool.mediate < ${TURN}`]);
    expect(placesOf(SPAN.toolInvoke)).toEqual([CALL]);
    expect(placesOf(SPAN.authorize)).toEqual([
      // Admission, and the calls.
      `authorizer kernel.authorize < authorizer authority.decide < ${TURN}`,
      `authorizer kernel.authorize < authorizer authority.decide < ${CALL}`,
    ]);
    expect(placesOf(SPAN.toolHandler)).toEqual([`tool-executor kernel.tool.handler < ${CALL}`]);
    const count = (name: string) => trace.filter((span) => span.name === name).length;
    // What the envelope refuses reaches no kernel, and what the kernel refuses reaches no handler.
    expect([SPAN.toolMediate, SPAN.toolInvoke, SPAN.toolHandler, SPAN.authorize].map(count)).toEqual([8, 7, 4, 8]);
    expect(trace.find(({ name }) => name === 'authority.decide')).toMatchObject({ kind: 'server' });
  });

  it('in which the projector publishes each record under the write that made it', () => {
    const forwarded = 'audit-projector audit.forward < audit-projector ledger < ';
    const places = placesOf(SPAN.auditForward);
    expect(places.filter((place) => !place.startsWith(`${forwarded}tool-executor `) || !place.endsWith(TURN))).toEqual([]);
    expect(places).toEqual(
      expect.arrayContaining([
        `${forwarded}${TURN}`,
        `${forwarded}tool-executor ledger.admit < ${CALL}`,
        `${forwarded}tool-executor ledger.settle < ${CALL}`,
      ]),
    );
    expect(trace.find(({ name }) => name === 'ledger')).toMatchObject({ kind: 'consumer' });
  });

  it('in which no child begins before its parent', () => {
    const early = trace.filter((span) => {
      const parent = trace.find(({ spanId }) => spanId === span.parentSpanId);
      return parent !== undefined && span.startMs < parent.startMs - 1;
    });
    expect(early.map(({ service, name }) => `${service} ${name}`)).toEqual([]);
  });

  it('in which a refusal is an outcome and not an error', () => {
    const invoked = trace.filter(({ name }) => name === SPAN.toolInvoke).toSorted((a, b) => a.startMs - b.startMs);
    expect(
      invoked.map(({ attributes, status }) => [attributes['sharedos.outcome'], attributes['sharedos.reason_code'], status.code]),
    ).toEqual([
      ['succeeded', undefined, 'unset'],
      ['succeeded', undefined, 'unset'],
      ['succeeded', undefined, 'unset'],
      ['succeeded', undefined, 'unset'],
      ['denied', 'no_matching_grant', 'unset'],
      ['failed', 'invalid_tool_arguments', 'error'],
      ['denied', 'tool_unavailable', 'unset'],
    ]);
  });
});

describe('one message is one trace', () => {
  it('through the client, the router, the authorizer and the projector', async () => {
    const spans = await receiver.waitFor((all) => {
      const letter = all.find(({ name }) => name === 'letter');
      return all.some(({ name, traceId }) => name === SPAN.auditForward && traceId === letter?.traceId);
    }, DEADLINE_MS);
    const letter = spans.find(({ name }) => name === 'letter');
    const ours = spans.filter(({ traceId }) => traceId === letter?.traceId);
    const places = (name: string) => [
      ...new Set(ours.filter((span) => span.name === name && span.kind === 'internal').map((span) => parentsOf(ours, span)?.join(' < '))),
    ];
    const SENT = 'messaging-router message.send < messaging-router message.send < client letter';
    expect(places(SPAN.messageSend)).toEqual([SENT]);
    expect(places(SPAN.authorize)).toEqual([`authorizer kernel.authorize < authorizer authority.decide < ${SENT}`]);
    expect(places(SPAN.messageDeliver)).toEqual([`messaging-router message.deliver < ${SENT}`]);
    expect(places(SPAN.auditForward)).toEqual([`audit-projector audit.forward < audit-projector ledger < ${SENT}`]);
  });
});

describe('nothing that was read, written or secret is told', () => {
  /** Where somebody may look who may not see the content. LEDGER and the results in TURN_EVENTS hold what was read, and are not among them. */
  const places = async (): Promise<Readonly<Record<string, string>>> => {
    const bus = await connectAs(system.stack, 'audit-projector');
    try {
      return {
        spans: JSON.stringify(receiver.spans()),
        'service logs': system.stack
          .services()
          .map((service) => service.output())
          .join('\n'),
        'audit records': JSON.stringify([...(await readAudit(bus)).values()]),
        'turn events': events.join('\n'),
      };
    } finally {
      await bus.close();
    }
  };
  const found = (all: Readonly<Record<string, string>>, secrets: Readonly<Record<string, string>>): string[] =>
    Object.entries(all).flatMap(([place, text]) =>
      Object.entries(secrets).flatMap(([name, secret]) => (text.includes(secret) ? [`${name} in ${place}`] : [])),
    );

  it('of files and of arguments: not in spans, logs, audit or events', async () => {
    const all = await places();
    expect(found(all, MARKERS)).toEqual([]);
    // Each place has something of this turn in it, so it was looked at.
    expect(
      Object.entries(all)
        .filter(([, text]) => !text.includes('files.read'))
        .map(([place]) => place),
    ).toEqual([]);
  });

  it('while the answer and the ledger do hold it, as they must', async () => {
    expect(result).toMatchObject({ status: 'succeeded' });
    expect(JSON.stringify(result)).toContain(MARKERS.fileContent);
    const bus = await connectAs(system.stack, 'audit-projector');
    try {
      expect(JSON.stringify(await readOperations(bus))).toContain(MARKERS.fileContent);
    } finally {
      await bus.close();
    }
  });

  it('of passwords, the token secret and turn tokens: not in those, nor in the ledger or any answer', async () => {
    const { credentials, redisUrl } = system.stack;
    const secrets = {
      ...Object.fromEntries(SERVICE_NAMES.map((name) => [`password of ${name}`, credentials.service(name).password])),
      ...Object.fromEntries(
        [ALICE, BOB, SCOUT, AUDITOR].map((principal) => [
          `password of ${JSON.stringify(principal)}`,
          credentials.principal(NAMESPACE, principal).password,
        ]),
      ),
      'password of the provisioner': credentials.provisioner.password,
      'password of Redis': new URL(redisUrl).password,
      'secret of tokens': TOKEN_SECRET,
      'a turn token': TOKEN_START,
    };
    const bus = await connectAs(system.stack, 'audit-projector');
    try {
      const context = {
        namespaceId: NAMESPACE,
        actor: SCOUT,
        authority: ALICE,
        owner: ALICE,
        purpose: 'testing',
        traceId: 'trace-token',
        enabledToolNamespaces: [],
        now: new Date().toISOString(),
      };
      const opened = await new AuthorityClient(bus, 5_000).open({
        turnId: 'turn-token',
        context,
        validForMs: 1_000,
        auditId: 'audit-token',
      });
      // Tokens do begin so; otherwise the search for them would find nothing whatever leaked.
      expect(opened.ok && opened.value.token.startsWith(TOKEN_START)).toBe(true);
      const all = { ...(await places()), ledger: JSON.stringify(await readOperations(bus)), answer: JSON.stringify(result) };
      expect(found(all, secrets)).toEqual([]);
    } finally {
      await bus.close();
    }
  });
});

describe('spans that get lost', () => {
  const stopExecutors = async (): Promise<string[]> => {
    const executors = system.stack.services().filter(({ name }) => name === 'tool-executor');
    return Promise.all(
      executors.map(async (executor) => {
        expect(await executor.stop()).toEqual({ code: 0, signal: null });
        return executor.output();
      }),
    );
  };

  it('are counted and reported when the process stops, and cost the service nothing else', async () => {
    expect((await stopExecutors()).filter((output) => output.includes('spans'))).toEqual([]);
    const nobody = `http://127.0.0.1:${await freePort()}`;
    await system.stack.startService('tool-executor', { env: { ...tracedTo(receiver), OTEL_EXPORTER_OTLP_ENDPOINT: nobody } });
    const answer = await system.run({ calls: [{ tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } }] });
    expect(answer.result).toMatchObject({ status: 'succeeded', output: { calls: [{ status: 'succeeded' }] } });
    const [output = ''] = await stopExecutors();
    const [, dropped, all] = /telemetry: (\d+) of (\d+) spans were dropped/.exec(output) ?? [];
    expect(dropped).toBe(all);
    expect(Number(dropped)).toBeGreaterThanOrEqual(8);
    expect(output).toContain(`"event":"spans dropped"`);
  });
});
