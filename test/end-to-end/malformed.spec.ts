import { type ClientError, newTurn } from '@sharedos/client';
import {
  PAYLOAD_BYTES_MAX,
  type ProtocolError,
  type PrincipalRequestVerb,
  REQUEST_BYTES_MAX,
  type Result,
  SCHEMA_HEADER,
  SUBJECTS,
  SUBJECT_BODIES,
  TurnRefused,
  decodeBody,
  principalSubject,
  timestampOf,
} from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { type NatsConnection, connect, headers } from 'nats';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EXAMPLES } from '../../scripts/schemas/examples.ts';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 30_000;

let system: TestSystem;
/** A connection of alice's own that sends what the SDK would not. */
let raw: NatsConnection;
/** Looks at streams with the rights of the service that reads them. */
let looker: NatsConnection;
const refusals = new Map<number, ProtocolError>();
let pids: readonly number[];

const pidsNow = (): readonly number[] =>
  Object.values(system.services).flatMap((processes) => processes.filter((one) => one.running()).map(({ pid }) => pid));

beforeAll(async () => {
  system = await startTestSystem();
  await system.files(ALICE, { 'plan.md': 'Buy milk' });
  await system.letAliceRunScout();
  await system.grant('read', { path: [], actions: ['read'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const open = async ({ user, password, inboxPrefix }: { user: string; password: string; inboxPrefix: string }): Promise<NatsConnection> =>
    connect({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix });
  raw = await open(system.stack.credentials.principal(NAMESPACE, ALICE));
  looker = await open(system.stack.credentials.service('tool-executor'));
  raw.subscribe(`${principalSubject('turn.refused', NAMESPACE, ALICE)}.>`, {
    callback: (error, message) => {
      const refused =
        error === null && message.headers?.get(SCHEMA_HEADER) === TurnRefused.name ? decodeBody(TurnRefused, message.data) : undefined;
      if (refused?.ok === true) refusals.set(refused.value.sequence, refused.value.error);
    },
  });
  await raw.flush();
  pids = pidsNow();
});
afterAll(async () => {
  await raw?.close();
  await looker?.close();
  await system?.stop();
});
// Whatever was sent: the same processes serve the next good request, and nothing waits to be delivered again.
afterEach(async () => {
  await servesOn();
  await queueIsEmpty();
  expect(pidsNow()).toEqual(pids);
}, DEADLINE_MS * 2);

const servesOn = async (): Promise<void> => {
  const { result } = await system.run({ calls: [{ tool: 'files.read', arguments: { path: ['plan.md'] } }] });
  expect(result).toMatchObject({ status: 'succeeded', output: { calls: [{ output: { content: 'Buy milk' } }] } });
};

const queueIsEmpty = async (): Promise<void> => {
  await waitFor(
    'an empty queue of turns',
    async () => {
      const stream = (await looker.request('$JS.API.STREAM.INFO.TURNS', '', { timeout: 5_000 })).json<{ state: { messages: number } }>();
      return stream.state.messages === 0;
    },
    DEADLINE_MS,
  );
};

const named = (schema: string | undefined) => {
  const written = headers();
  if (schema !== undefined) written.set(SCHEMA_HEADER, schema);
  return written;
};

interface PubAck {
  readonly stream?: string;
  readonly seq?: number;
  readonly error?: { readonly description: string };
}

/** Queues a body as it is, and waits for the refusal that reaches its sender. */
const refusalOf = async (body: string | Uint8Array, schema?: string): Promise<ProtocolError> => {
  const subject = principalSubject('turn.request', NAMESPACE, ALICE);
  const ack = (await raw.request(subject, body, { timeout: 10_000, headers: named(schema) })).json<PubAck>();
  if (ack.error !== undefined || ack.seq === undefined) throw new Error(`the broker did not queue it: ${ack.error?.description}`);
  const { seq } = ack;
  return waitFor(`the refusal of the request at ${seq}`, () => refusals.get(seq), DEADLINE_MS);
};

/** Asks a service with a body as it is. */
const answerTo = async (
  verb: PrincipalRequestVerb,
  body: string | Uint8Array,
  schema?: string,
): Promise<{ schema: string | undefined; reply: unknown }> => {
  const message = await raw.request(principalSubject(verb, NAMESPACE, ALICE), body, { timeout: 10_000, headers: named(schema) });
  return { schema: message.headers?.get(SCHEMA_HEADER), reply: message.json() };
};

const goodTurn = () => newTurn({ from: ALICE, agent: SCOUT, purpose: 'testing', calls: [] });
const text = (value: unknown): string => JSON.stringify(value);
/** A good body with one more member, spelled as given. */
const withMember = (body: object, ...members: readonly string[]): string =>
  `{${[text(body).slice(1, -1), ...members].filter((part) => part !== '').join(',')}}`;
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const NOT_A_BODY = [
  { what: 'nothing', body: '' },
  { what: 'not JSON', body: 'not json' },
  { what: 'JSON cut off', body: '{"version":"1"' },
  { what: 'not UTF-8', body: Uint8Array.from([0x22, 0xff, 0xfe, 0x22]) },
  { what: 'a NUL byte', body: '\u0000' },
  { what: 'null', body: 'null' },
  { what: 'a list', body: '[]' },
  { what: 'an object with nothing it needs and much it must not have', body: '{"every":"thing"}' },
  { what: '65 levels', body: nested(65) },
  { what: 'thirty thousand levels', body: nested(30_000) },
] as const;

describe('a turn request that is none', () => {
  it.each(NOT_A_BODY)('is refused to its sender as invalid_request: $what', async ({ body }) => {
    expect(await refusalOf(body)).toMatchObject({ code: 'invalid_request', retryable: false });
  });

  it.each([
    { what: 'an unknown key', spoil: () => withMember(goodTurn(), '"authority":{"kind":"human","userId":"bob"}'), says: 'unknown key' },
    { what: 'a member named twice', spoil: () => withMember(goodTurn(), '"version":"1"'), says: 'twice' },
    { what: 'a member named twice, once with an escape', spoil: () => withMember(goodTurn(), '"\\u0076ersion":"1"'), says: 'twice' },
    {
      what: 'a key __proto__',
      spoil: () => withMember(goodTurn(), '"__proto__":{"owner":{"kind":"human","userId":"bob"}}'),
      says: '__proto__',
    },
    { what: 'a key __proto__ deep inside', spoil: () => withMember(goodTurn(), '"metadata":{"a":[{"__proto__":1}]}'), says: '__proto__' },
    { what: '65 levels inside', spoil: () => withMember(goodTurn(), `"metadata":{"deep":${nested(64)}}`), says: 'nested deeper' },
    { what: 'another version', spoil: () => text({ ...goodTurn(), version: '2' }), says: 'version' },
    { what: 'a key that no request has', spoil: () => text({ ...goodTurn(), authority: {} }), says: 'unknown key' },
    { what: 'a context that is none', spoil: () => text({ ...goodTurn(), context: {} }), says: 'context' },
    { what: 'no execution id', spoil: () => text({ ...goodTurn(), executionId: undefined }), says: 'executionId' },
    {
      what: 'an execution id with half a surrogate pair',
      spoil: () => text({ ...goodTurn(), executionId: '\ud83e' }),
      says: 'executionId',
    },
    { what: 'options out of range', spoil: () => text({ ...goodTurn(), options: { maxSteps: 0 } }), says: 'options.maxSteps' },
  ])('is refused as invalid_request and hears which rule it broke: $what', async ({ spoil, says }) => {
    const error = await refusalOf(spoil());
    expect(error).toMatchObject({ code: 'invalid_request', retryable: false });
    expect(error.message).toContain(says);
  });

  it('is refused under the schema of another message, however good its body', async () => {
    expect(await refusalOf(text(goodTurn()), 'turn.cancel/1')).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('turn.request/1'),
    });
    expect(await refusalOf(text(goodTurn()), 'turn.request/2')).toMatchObject({ code: 'invalid_request' });
  });

  it('is not queued at all when it is larger than a request may be', async () => {
    const subject = principalSubject('turn.request', NAMESPACE, ALICE);
    const ack = (await raw.request(subject, 'x'.repeat(REQUEST_BYTES_MAX + 1), { timeout: 10_000 })).json<PubAck>();
    expect(ack.seq ?? 0).toBe(0);
    expect(ack.error?.description).toMatch(/size/);
  });
});

describe('what the SDK hears of a request that was queued and refused', () => {
  const settled = async (
    change: (request: ReturnType<typeof goodTurn>) => ReturnType<typeof goodTurn>,
    principal: typeof ALICE | typeof BOB = ALICE,
  ): Promise<Result<unknown, ClientError>> => {
    const submitted = await (await system.client(principal)).turns.submit(change(goodTurn()), { resultTimeoutMs: DEADLINE_MS });
    if (!submitted.ok) throw new Error(`it was not queued: ${text(submitted.error)}`);
    return submitted.value.result;
  };
  const refusedWith = (code: string) => ({ ok: false, error: { kind: 'refused', error: { code, retryable: false } } });

  it('is identity_mismatch when the message names another sender, in either direction', async () => {
    const spoofed = (request: ReturnType<typeof goodTurn>) => ({ ...request, message: { ...request.message, sender: BOB } });
    expect(await settled(spoofed)).toMatchObject(refusedWith('identity_mismatch'));
    expect(await settled((request) => request, BOB)).toMatchObject(refusedWith('identity_mismatch'));
  });

  it('is not_a_trusted_host when it states under whose authority it runs', async () => {
    const context = { actor: SCOUT, authority: BOB, owner: BOB, purpose: 'work', traceId: 'of-bob' };
    expect(await settled((request) => ({ ...request, context }))).toMatchObject(refusedWith('not_a_trusted_host'));
  });

  it.each([
    { what: 'older than the horizon', at: -8 * 86_400_000 },
    { what: 'from the future', at: 3_600_000 },
  ])('is replay_expired when it is $what', async ({ at }) => {
    expect(await settled((request) => ({ ...request, requestedAt: timestampOf(Date.now() + at) }))).toMatchObject(
      refusedWith('replay_expired'),
    );
  });

  it('is replay_conflict when its execution id was used for another request', async () => {
    const first = await system.run({ executionId: 'used', calls: [] });
    expect(first.result.status).toBe('succeeded');
    expect(await settled((request) => ({ ...request, executionId: 'used' }))).toMatchObject(refusedWith('replay_conflict'));
  });

  it('is request_too_large before anything is sent when it could not be queued', async () => {
    const submitted = await (
      await system.client(ALICE)
    ).turns.submit({ ...goodTurn(), metadata: { large: 'x'.repeat(REQUEST_BYTES_MAX) } });
    expect(submitted).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'request_too_large' } } });
  });
});

const VERBS = (Object.keys(SUBJECTS) as (keyof typeof SUBJECTS)[]).filter(
  (verb): verb is PrincipalRequestVerb => SUBJECTS[verb].use === 'principal-request',
);

/** A body that each verb would take: those of which more is made below, and the published example of every other. */
const GOOD: Readonly<Partial<Record<PrincipalRequestVerb, object>>> = {
  'grant.issue': {
    commandId: 'c',
    grant: { id: 'never', subject: BOB, capabilities: [{ resource: { namespace: 'files', path: [] }, actions: ['read'], scope: 'exact' }] },
  },
  'message.send': { id: 'never', receiver: BOB, purpose: 'testing', payload: null, traceId: 'never', createdAt: timestampOf(0) },
};
const goodBody = (verb: PrincipalRequestVerb): object => {
  const [message] = SUBJECT_BODIES[verb].carries;
  const [example] = Object.values(EXAMPLES[message?.name ?? '']?.valid ?? {});
  const good = GOOD[verb] ?? example;
  if (message?.schema.safeParse(good).success !== true) throw new Error(`there is no good body of ${verb}`);
  return good as object;
};

describe('a malformed question', () => {
  it.each(VERBS)('is answered by a typed refusal under the reply schema of its verb: %s', async (verb) => {
    const good = goodBody(verb);
    const spoiled: readonly (string | Uint8Array)[] = [
      ...NOT_A_BODY.map(({ body }) => body),
      withMember(good, '"unknown":1'),
      withMember(good, '"a":1', '"a":1'),
      withMember(good, '"__proto__":{}'),
      withMember(good, `"deep":${nested(64)}`),
      withMember(good, `"large":"${'x'.repeat(REQUEST_BYTES_MAX)}"`),
      withMember(good, `"larger":"${'x'.repeat(PAYLOAD_BYTES_MAX / 8)}"`),
    ];
    const refused = {
      schema: SUBJECT_BODIES[verb].reply?.name,
      reply: { ok: false, error: { code: 'invalid_request', retryable: false } },
    };
    for (const body of spoiled) expect(await answerTo(verb, body)).toMatchObject(refused);
    expect(await answerTo(verb, text(good), 'turn.request/1')).toMatchObject(refused);
    expect(await answerTo(verb, text(good), 'nonsense')).toMatchObject(refused);
  });

  it.each([
    {
      verb: 'grant.issue',
      body: { commandId: 'other-issuer', grant: { ...(GOOD['grant.issue'] as { grant: object }).grant, issuer: BOB } },
    },
    {
      verb: 'grant.issue',
      body: {
        commandId: 'other-owner',
        grant: {
          id: 'never',
          subject: ALICE,
          capabilities: [{ resource: { namespace: 'files', path: [], owner: BOB }, actions: ['*'], scope: 'descendants' }],
        },
      },
    },
    { verb: 'message.send', body: { ...GOOD['message.send'], sender: BOB } },
  ] as const)('is identity_mismatch when it names another sender, issuer or owner: $verb', async ({ verb, body }) => {
    expect((await answerTo(verb, text(body))).reply).toMatchObject({ ok: false, error: { code: 'identity_mismatch' } });
  });

  it('made no grant', async () => {
    expect((await answerTo('grant.get', text({ grantId: 'never' }))).reply).toMatchObject({
      ok: false,
      error: { code: 'grant_not_found' },
    });
  });
});

describe('messages', () => {
  const send = async (message: { id: string; payload: string; receiver?: typeof BOB | { kind: 'human'; userId: string } }) => {
    const fixed = { purpose: 'testing', traceId: `trace ${message.id}`, createdAt: '2026-11-30T12:00:00Z' };
    const sent = await (await system.client(ALICE)).messages.send({ receiver: BOB, ...fixed, ...message });
    return sent.ok ? sent.value : sent.error;
  };
  const inbox = async (who: typeof ALICE | typeof BOB) => {
    const answer = await (await system.client(who)).messages.inbox();
    if (!answer.ok) throw new Error(text(answer.error));
    return answer.value;
  };

  beforeAll(() =>
    system.grant(
      'alice writes to bob',
      { namespace: 'sharedos.messaging', path: ['human', 'bob'], actions: ['send'], scope: 'exact' },
      { to: ALICE },
    ),
  );

  it('reach the inbox of their recipient, and no other, once however often they are sent', async () => {
    const first = await send({ id: 'once', payload: 'hello' });
    expect(first).toMatchObject({ status: 'accepted', messageId: 'once' });
    expect(await send({ id: 'once', payload: 'hello' })).toEqual(first);
    expect((await inbox(BOB)).map(({ message }) => [message.id, message.sender, message.payload])).toEqual([['once', ALICE, 'hello']]);
    expect(await inbox(ALICE)).toEqual([]);
  });

  it('are replay_conflict when the id was used for another payload, and the first stays as it was', async () => {
    expect(await send({ id: 'once', payload: 'something else' })).toMatchObject({ status: 'denied', error: { code: 'replay_conflict' } });
    expect((await inbox(BOB)).map(({ message }) => message.payload)).toEqual(['hello']);
  });

  it('to somebody that no grant names are denied, on record, and are not delivered', async () => {
    expect(await send({ id: 'denied', payload: 'hello', receiver: { kind: 'human', userId: 'auditor' } })).toMatchObject({
      status: 'denied',
      error: { code: 'no_matching_grant' },
    });
    expect((await inbox(BOB)).map(({ message }) => message.id)).toEqual(['once']);
    const records = await system.records('trace denied', (found) => found.some(({ type }) => type === 'message.sent'));
    expect(records.filter(({ outcome }) => outcome === 'denied').map(({ type, reason }) => [type, reason])).toEqual([
      ['authorization.checked', 'no_matching_grant'],
      ['message.sent', 'no_matching_grant'],
    ]);
  });

  it.each(['\ud83e', 'a/b', '..', 'a\u0000'])('to a name that no path can say are invalid_request: %j', async (userId) => {
    expect(await send({ id: 'unspeakable', payload: 'hello', receiver: { kind: 'human', userId } })).toMatchObject({
      kind: 'refused',
      error: { code: 'invalid_request' },
    });
  });

  it('cannot be taken out of the inbox of another', async () => {
    const [waiting] = await inbox(BOB);
    const sequence = waiting?.sequence ?? 0;
    expect(await (await system.client(ALICE)).messages.ack(sequence)).toEqual({ ok: true, value: false });
    expect((await inbox(BOB)).map((entry) => entry.sequence)).toEqual([sequence]);
  });

  it('are gone once their recipient acknowledged them, and acknowledging again changes nothing', async () => {
    const [waiting] = await inbox(BOB);
    const { messages } = await system.client(BOB);
    expect(await messages.ack(waiting?.sequence ?? 0)).toEqual({ ok: true, value: true });
    expect(await inbox(BOB)).toEqual([]);
    expect(await messages.ack(waiting?.sequence ?? 0)).toEqual({ ok: true, value: false });
    expect(await messages.ack(999_999)).toEqual({ ok: true, value: false });
  });

  it('are not delivered a second time after that, but answered with their receipt', async () => {
    expect(await send({ id: 'once', payload: 'hello' })).toMatchObject({ status: 'accepted', messageId: 'once' });
    expect(await inbox(BOB)).toEqual([]);
  });
});
