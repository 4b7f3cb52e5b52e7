import { type BrokerPrincipal, laneConsumer, laneFilter } from '@sharedos/bus';
import { REQUEST_BYTES_MAX, SCHEMA_HEADER, SERVICE_NAMES, inboxPrefix, namespaceSubject, principalSubject } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { connect } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type BrokerUnderAttack,
  type RawConnection,
  agent,
  hearing,
  human,
  INBOXES,
  refusedPublish,
  refusedSubscribe,
  requestTurn,
  startBroker,
  verbsOf,
} from './broker-under-attack.ts';

// Mallory is an honest principal of the tenant until the first test; everybody else is somebody she would like to be.
const mallory: BrokerPrincipal = { namespaceId: 'tenant', principal: agent('mallory') };
const bob: BrokerPrincipal = { namespaceId: 'tenant', principal: agent('bob') };
const carol: BrokerPrincipal = { namespaceId: 'tenant', principal: human('carol'), auditor: true };
const rival: BrokerPrincipal = { namespaceId: 'rival', principal: agent('mallory'), auditor: true };
const namesake: BrokerPrincipal = { namespaceId: 'tenant', principal: human('mallory') };
const HOSTILE_IDS = ['a.b', '*', '>', '../x', 'a b', '~Kg', '😀', 'é'.repeat(125), '語'.repeat(256)];
const hostile = HOSTILE_IDS.map((id): BrokerPrincipal => ({ namespaceId: id, principal: agent(id) }));

const DEADLINE_MS = 5_000;
const NOTHING = { stored: {}, asked: [] };

let broker: BrokerUnderAttack;
let attacker: RawConnection;
beforeAll(async () => {
  broker = await startBroker([mallory, bob, carol, rival, namesake, ...hostile]);
  attacker = await broker.as(mallory);
});
afterAll(() => broker?.stop());

const turnOf = ({ namespaceId, principal }: BrokerPrincipal): string => principalSubject('turn.request', namespaceId, principal);
const askOf = ({ namespaceId, principal }: BrokerPrincipal): string => principalSubject('turn.get', namespaceId, principal);
const resultOf = ({ namespaceId, principal }: BrokerPrincipal): string => principalSubject('turn.result', namespaceId, principal, 'e1');
const stepOf = ({ namespaceId, principal }: BrokerPrincipal): string => principalSubject('runtime.step', namespaceId, principal);
const asService = (name: (typeof SERVICE_NAMES)[number]): RawConnection => broker.asService(name);

describe('what is allowed works', () => {
  it('a turn request reaches the queue, and its acknowledgement the requester', async () => {
    let ack = {};
    const reached = await broker.reachedBy(attacker, async () => {
      ack = await requestTurn(attacker, turnOf(mallory));
    });
    expect(ack).toMatchObject({ stream: 'TURNS' });
    expect(reached).toEqual({ stored: { TURNS: 1 }, asked: [] });
  });
  it.each(verbsOf('principal-request'))('%s reaches its service, and the answer comes back', async (verb) => {
    const subject = principalSubject(verb as 'turn.get', 'tenant', mallory.principal);
    const answer = await attacker.nats.request(subject, '{}', { timeout: DEADLINE_MS });
    expect(answer.string()).toBe(subject);
  });
  it.each(verbsOf('to-principal'))('%s reaches the one it is for, and nobody else', async (verb) => {
    const to = await broker.as(bob);
    const subject = principalSubject(verb as 'turn.result', 'tenant', bob.principal, 'e1', 'x');
    const [his, hers, theirs] = await Promise.all([
      hearing(to, `${principalSubject(verb as 'turn.result', 'tenant', bob.principal)}.>`),
      hearing(attacker, `${principalSubject(verb as 'turn.result', 'tenant', mallory.principal)}.>`),
      hearing(await broker.as(rival), `${principalSubject(verb as 'turn.result', 'rival', rival.principal)}.>`),
    ]);
    const executor = asService('tool-executor').nats;
    await executor.request(subject, 'for bob', { timeout: DEADLINE_MS });
    await executor.request(principalSubject(verb as 'turn.result', 'tenant', mallory.principal, 'e1'), 'for mallory', {
      timeout: DEADLINE_MS,
    });
    await waitFor('both results', () => his.length > 0 && hers.length > 0, DEADLINE_MS);
    expect([his, hers, theirs].map((heard) => heard.map((message) => message.string()))).toEqual([['for bob'], ['for mallory'], []]);
  });
  it('the feed of a namespace reaches its auditor, and no other namespace', async () => {
    const [ours, theirs] = await Promise.all([
      hearing(await broker.as(carol), `${namespaceSubject('feed.audit', 'tenant')}.>`),
      hearing(await broker.as(rival), `${namespaceSubject('feed.audit', 'rival')}.>`),
    ]);
    const authorizer = asService('authorizer').nats;
    await authorizer.request(namespaceSubject('audit', 'tenant', 'denied', 'tool', 'invoked'), 'ours', { timeout: DEADLINE_MS });
    await authorizer.request(namespaceSubject('audit', 'rival', 'denied', 'tool', 'invoked'), 'theirs', { timeout: DEADLINE_MS });
    await waitFor('both records', () => ours.length > 0 && theirs.length > 0, DEADLINE_MS);
    expect([ours, theirs].map((heard) => heard.map((message) => [message.subject, message.string()]))).toEqual([
      [['sharedos.v1.tenant.feed.audit.denied.tool.invoked', 'ours']],
      [['sharedos.v1.rival.feed.audit.denied.tool.invoked', 'theirs']],
    ]);
  });
  it.each(hostile.map((who, place) => [HOSTILE_IDS[place]?.slice(0, 12), who] as const))(
    'a principal and a namespace called %j work like any other',
    async (_, who) => {
      const them = await broker.as(who);
      expect(await requestTurn(them, turnOf(who))).toMatchObject({ stream: 'TURNS' });
      expect((await them.nats.request(askOf(who), '{}', { timeout: DEADLINE_MS })).string()).toBe(askOf(who));
      const heard = await hearing(them, `${principalSubject('turn.result', who.namespaceId, who.principal)}.>`);
      await asService('tool-executor').nats.request(resultOf(who), 'result', { timeout: DEADLINE_MS });
      await waitFor('the result', () => heard.length === 1, DEADLINE_MS);
      expect(them.refusals).toEqual([]);
    },
  );
});

describe('an agent that is asked for a step', () => {
  const executor = () => asService('tool-executor').nats;
  /** Hears what it is asked and does not answer by itself. */
  const asked = async (who: BrokerPrincipal) => {
    const raw = await broker.as(who);
    return { raw, heard: await hearing(raw, stepOf(who)) };
  };
  /** Asks, and hands over the reply subject that the agent sees; the answer is waited for afterwards. */
  const ask = async (who: BrokerPrincipal, heard: readonly { reply?: string }[]) => {
    const answer = executor().request(stepOf(who), 'a step', { timeout: DEADLINE_MS });
    answer.catch(() => undefined);
    const before = heard.length;
    await waitFor('the question', () => heard.length > before, DEADLINE_MS);
    return { answer, reply: heard.at(-1)?.reply ?? '' };
  };

  it('hears it, alone, and its answer comes back', async () => {
    const [his, hers, theirs] = await Promise.all([asked(bob), asked(mallory), asked(rival)]);
    const { answer, reply } = await ask(bob, his.heard);
    his.raw.nats.publish(reply, 'my decision');
    expect((await answer).string()).toBe('my decision');
    expect([his, hers, theirs].map(({ heard }) => heard.map((message) => message.string()))).toEqual([['a step'], [], []]);
    expect(reply.startsWith('_INBOX_SERVICE')).toBe(false);
  });
  it('cannot be answered for, not even by one that learned where the answer goes', async () => {
    const his = await asked(bob);
    const { answer, reply } = await ask(bob, his.heard);
    const hers = await asked(mallory);
    await refusedPublish(hers.raw, reply, 'her decision');
    his.raw.nats.publish(reply, 'my decision');
    expect((await answer).string()).toBe('my decision');
  });
  it('answers once', async () => {
    const his = await asked(bob);
    const { answer, reply } = await ask(bob, his.heard);
    his.raw.nats.publish(reply, 'my decision');
    await answer;
    await refusedPublish(his.raw, reply, 'another');
  });
  it('is not answered for by a service, nor asked by a principal', async () => {
    for (const [name, raw] of SERVICE_NAMES.map((service) => [service, asService(service)] as const)) {
      await refusedSubscribe(raw, stepOf(bob));
      if (name !== 'tool-executor') await refusedPublish(raw, stepOf(bob));
    }
  });
  it.each([
    stepOf(bob),
    stepOf(rival),
    'sharedos.v1.tenant.runtime.step.agent.*',
    'sharedos.v1.*.runtime.step.>',
    'sharedos.v1.tenant.runtime.>',
  ])('is not overheard on %s', (subject) => refusedSubscribe(attacker, subject));
  it('may not be a human of the same name', async () => {
    const human_ = await broker.as(namesake);
    await refusedSubscribe(human_, stepOf(mallory));
    await refusedSubscribe(human_, 'sharedos.v1.tenant.runtime.step.human.mallory');
  });
  it('answers only what it was asked: a reply subject of its own choice is refused as ever', async () => {
    const his = await asked(bob);
    for (const subject of ['_R_.x', `${INBOXES[0]}.x`, `${inboxPrefix('tenant', carol.principal)}.x`, turnOf(mallory)]) {
      expect(await broker.reachedBy(his.raw, () => refusedPublish(his.raw, subject))).toEqual(NOTHING);
    }
  });
  it('that is not there is known at once to be absent, or after its deadline at the latest', async () => {
    await expect(executor().request(stepOf({ ...bob, principal: agent('nobody') }), 'a step', { timeout: 500 })).rejects.toThrow();
  });
});

describe('publishing under the tokens of another', () => {
  const victims = { 'of the namespace': bob, 'of another namespace': rival, 'of another kind and the same name': namesake };
  const table = verbsOf('principal-request', 'principal-stream').flatMap((verb) =>
    Object.entries(victims).map(([which, victim]) => [verb, which, victim] as const),
  );
  it.each(table)('%s of a principal %s is refused and reaches nobody', async (verb, _, victim) => {
    const subject = principalSubject(verb as 'turn.get', victim.namespaceId, victim.principal);
    expect(await broker.reachedBy(attacker, () => refusedPublish(attacker, subject))).toEqual(NOTHING);
  });
  const stray = ['*', '>', '~', '~bWFsbG9yeQ', 'mallory.x', 'Mallory'].flatMap((token) =>
    verbsOf('principal-request', 'principal-stream')
      .slice(0, 2)
      .map((verb) => `sharedos.v1.tenant.${verb}.agent.${token}`),
  );
  it.each([...stray, 'sharedos.v1.*.turn.request.agent.mallory', 'sharedos.v1.>', 'sharedos.v1.tenant.turn.*.agent.mallory', '>', '*'])(
    'the stray subject %s is refused',
    async (subject) => expect(await broker.reachedBy(attacker, () => refusedPublish(attacker, subject))).toEqual(NOTHING),
  );
  it.each(hostile.map((who, place) => [HOSTILE_IDS[place]?.slice(0, 12), who] as const))(
    'neither does a principal called %j pass for another',
    async (_, who) => {
      const them = await broker.as(who);
      for (const victim of [mallory, ...hostile.filter((other) => other !== who)]) {
        expect(await broker.reachedBy(them, () => refusedPublish(them, turnOf(victim)))).toEqual(NOTHING);
      }
    },
  );
});

describe('internal subjects', () => {
  const rest: Readonly<Record<string, readonly string[]>> = {
    'feed.audit': ['denied', 'tool', 'invoked'],
    audit: ['denied', 'tool', 'invoked'],
    inbox: ['agent', 'mallory'],
    ledger: ['use', 'g1', '1'],
    log: ['grant', 'g1'],
  };
  const inner = verbsOf('internal-request', 'internal-stream', 'feed').map((verb) =>
    namespaceSubject(verb, 'tenant', ...(rest[verb] ?? [])),
  );
  const results = [
    ...verbsOf('to-principal').flatMap((verb) =>
      [mallory, bob].map((who) => principalSubject(verb as 'turn.result', 'tenant', who.principal, 'e1')),
    ),
    ...[mallory, bob].map((who) => stepOf(who)),
  ];
  it.each([...inner, ...results])('nobody outside publishes on %s', async (subject) =>
    expect(await broker.reachedBy(attacker, () => refusedPublish(attacker, subject))).toEqual(NOTHING),
  );
  it.each(inner)('nor hears %s', (subject) => refusedSubscribe(attacker, subject));
  it.each(verbsOf('internal-request', 'internal-stream', 'feed', 'principal-request', 'principal-stream'))(
    'nor all of %s',
    async (verb) => {
      await refusedSubscribe(attacker, `sharedos.v1.tenant.${verb}.>`);
      await refusedSubscribe(attacker, `sharedos.v1.*.${verb}.*.*`);
    },
  );
  it('not even an auditor hears the records themselves', async () =>
    refusedSubscribe(await broker.as(carol), 'sharedos.v1.tenant.audit.>'));
});

describe('listening to another', () => {
  it.each([
    '>',
    '*',
    'sharedos.>',
    'sharedos.v1.tenant.>',
    'sharedos.v1.*.turn.result.>',
    'sharedos.v1.tenant.turn.result.>',
    'sharedos.v1.tenant.turn.result.agent.*',
    'sharedos.v1.tenant.turn.result.agent.*.e1',
    'sharedos.v1.tenant.turn.result.*.mallory.>',
    'sharedos.v1.*.turn.result.agent.mallory.>',
    resultOf(bob),
    resultOf(rival),
    resultOf(namesake),
    'sharedos.v1.tenant.feed.>',
    'sharedos.v1.rival.feed.audit.>',
    'sharedos.v1.*.feed.audit.>',
    '_INBOX.>',
    '_INBOX.*.*.*.>',
    `${inboxPrefix('tenant', bob.principal)}.>`,
    `${inboxPrefix('rival', rival.principal)}.>`,
    '_R_.>',
    '$JS.>',
    '$SYS.>',
    '$SRV.>',
    '$G.>',
    ...INBOXES.map((prefix) => `${prefix}.>`),
  ])('%s is refused, also in a queue group', async (subject) => {
    await refusedSubscribe(attacker, subject);
    await refusedSubscribe(attacker, subject, 'executors');
  });
  it('an auditor hears no other namespace', async () => {
    const auditor = await broker.as(carol);
    for (const subject of ['sharedos.v1.rival.feed.audit.>', 'sharedos.v1.*.feed.audit.>']) await refusedSubscribe(auditor, subject);
  });
});

describe('the API of JetStream and of the server', () => {
  const push = JSON.stringify({
    stream_name: 'TURNS',
    config: { durable_name: 'x', deliver_subject: 'sharedos.v1.tenant.log.grant.g1', ack_policy: 'none' },
  });
  it('answers a service that may ask', async () => {
    const info = await asService('tool-executor').nats.request('$JS.API.STREAM.INFO.TURNS', '', { timeout: DEADLINE_MS });
    expect(info.json()).toMatchObject({ config: { name: 'TURNS' } });
  });
  it.each([
    ['$JS.API.CONSUMER.CREATE.TURNS', push],
    ['$JS.API.CONSUMER.CREATE.TURNS.x', push],
    ['$JS.API.CONSUMER.DURABLE.CREATE.TURNS.x', push],
    ['$JS.API.CONSUMER.CREATE.LOG', push.replace('TURNS', 'LOG').replace('log.grant', 'authority.decide')],
    ['$JS.API.STREAM.CREATE.MINE', JSON.stringify({ name: 'MINE', subjects: ['sharedos.v1.tenant.turn.get.>'] })],
    ['$JS.API.STREAM.UPDATE.LOG', '{}'],
    ['$JS.API.STREAM.DELETE.LOG', ''],
    ['$JS.API.STREAM.PURGE.TURNS', ''],
    ['$JS.API.STREAM.MSG.GET.LOG', JSON.stringify({ seq: 1 })],
    ['$JS.API.STREAM.MSG.DELETE.TURNS', JSON.stringify({ seq: 1 })],
    ['$JS.API.DIRECT.GET.LOG', JSON.stringify({ seq: 1 })],
    ['$JS.API.CONSUMER.MSG.NEXT.TURNS.tool-executor', '1'],
    ['$JS.ACK.TURNS.tool-executor.1.1.1.1.1', '+ACK'],
    ['$JS.API.INFO', ''],
    ['$JS.CORE.API.STREAM.INFO.TURNS', ''],
    ['$SYS.REQ.SERVER.PING', ''],
    ['$SYS.REQ.ACCOUNT.CORE.CONNZ', ''],
    ['$SYS.REQ.USER.INFO', ''],
    ['$SYS.ACCOUNT.CORE.DISCONNECT', '{}'],
    ['$SRV.PING', ''],
    ['$SRV.STATS.authorizer', ''],
  ])('refuses a principal on %s', async (subject, body) =>
    expect(await broker.reachedBy(attacker, () => refusedPublish(attacker, subject, body))).toEqual(NOTHING),
  );
});

describe('a reply subject of the attacker’s choice', () => {
  const inside = [
    turnOf(bob),
    turnOf(rival),
    askOf(bob),
    principalSubject('grant.revoke', 'tenant', bob.principal),
    namespaceSubject('authority.decide', 'tenant'),
    namespaceSubject('log', 'tenant', 'grant', 'g1'),
    namespaceSubject('ledger', 'tenant', 'use', 'g1', '1'),
    namespaceSubject('audit', 'tenant', 'allowed', 'tool', 'invoked'),
    principalSubject('inbox', 'tenant', bob.principal),
    '$JS.API.STREAM.PURGE.TURNS',
    '$JS.API.STREAM.INFO.LOG',
    '$SYS.REQ.SERVER.PING',
    ...INBOXES.map((prefix) => `${prefix}.x`),
  ];
  it('is written to, between users of one account: this is what the boundary between the two is for', async () => {
    const executor = asService('tool-executor');
    const reached = await broker.reachedBy(executor, async () => {
      executor.nats.publish(namespaceSubject('ledger', 'tenant', 'use', 'control', '1'), '{}', {
        reply: namespaceSubject('log', 'tenant', 'grant', 'control'),
      });
      await waitFor('the acknowledgement in the log', async () => (await broker.heads()).LOG > 0, DEADLINE_MS);
    });
    expect(reached.stored).toEqual({ LEDGER: 1, LOG: 1 });
  });
  it.each(inside)('%s: the acknowledgement is written nowhere inside', async (reply) => {
    const reached = await broker.reachedBy(attacker, async () => {
      attacker.nats.publish(turnOf(mallory), '{}', { reply });
      // Acknowledgements leave a stream in order: after this one, the first has arrived wherever it can.
      await requestTurn(attacker, turnOf(mallory));
    });
    expect(reached).toEqual({ stored: { TURNS: 2 }, asked: [] });
    await drainOwnRequests();
  });
  it.each(inside)('%s: the answer of a service is written nowhere inside', async (reply) => {
    const reached = await broker.reachedBy(attacker, async () => {
      attacker.nats.publish(askOf(mallory), '{}', { reply });
      await attacker.nats.request(askOf(mallory), '{}', { timeout: DEADLINE_MS });
    });
    expect(reached).toEqual({ stored: {}, asked: [askOf(mallory), askOf(mallory)] });
  });
  it.each(['_R_.x.y', '$JS.ACK.TURNS.tool-executor.1.1.1.1.1'])('%s, which the broker itself uses, is refused', async (reply) => {
    for (const subject of [turnOf(mallory), askOf(mallory)]) {
      expect(await broker.reachedBy(attacker, () => refusedPublish(attacker, subject, '{}', { reply }))).toEqual(NOTHING);
    }
  });
  it('one that another principal hears delivers an acknowledgement or an answer, never anything named as a result or a record', async () => {
    const victim = await broker.as(bob);
    const auditor = await broker.as(carol);
    const heard = [
      await hearing(victim, `${principalSubject('turn.result', 'tenant', bob.principal)}.>`),
      await hearing(victim, `${inboxPrefix('tenant', bob.principal)}.>`),
      await hearing(victim, stepOf(bob)),
      await hearing(auditor, `${namespaceSubject('feed.audit', 'tenant')}.>`),
    ];
    for (const reply of [
      resultOf(bob),
      `${inboxPrefix('tenant', bob.principal)}.x`,
      stepOf(bob),
      namespaceSubject('feed.audit', 'tenant', 'allowed', 'tool', 'invoked'),
    ]) {
      await broker.reachedBy(attacker, () => {
        attacker.nats.publish(turnOf(mallory), '{}', { reply });
        attacker.nats.publish(askOf(mallory), '{}', { reply });
      });
    }
    await waitFor('what was sent to them', () => heard.every((messages) => messages.length === 2), DEADLINE_MS);
    // One account of principals shares its subjects, so the broker cannot keep these out; the name of the schema does.
    expect(heard.map((messages) => messages.map((message) => message.headers?.get(SCHEMA_HEADER) ?? '').toSorted())).toEqual(
      heard.map(() => ['', 'turn.get.reply/1']),
    );
    await drainOwnRequests();
  });
});

describe('headers that the broker obeys', () => {
  it('an id chosen to swallow another’s request does not touch one that has no id', async () => {
    const victim = await broker.as(bob);
    await requestTurn(attacker, turnOf(mallory), { 'Nats-Msg-Id': 'turn-1' });
    const ack = await requestTurn(victim, turnOf(bob));
    expect(ack.duplicate).toBeUndefined();
    expect(ack.seq).toBe((await broker.heads()).TURNS);
  });
  it('one that has the same id is told that it was taken for a duplicate, and is accepted a moment later', async () => {
    const victim = await broker.as(bob);
    const stolen = await requestTurn(attacker, turnOf(mallory), { 'Nats-Msg-Id': 'turn-2' });
    const ack = await requestTurn(victim, turnOf(bob), { 'Nats-Msg-Id': 'turn-2' });
    // Not silent: either it has a place of its own, or it says `duplicate`.
    expect(ack.duplicate === true || ack.seq !== stolen.seq).toBe(true);
    const accepted = await waitFor(
      'the end of the window',
      async () => {
        const again = await requestTurn(victim, turnOf(bob), { 'Nats-Msg-Id': 'turn-2' });
        return again.duplicate !== true && again;
      },
      DEADLINE_MS,
    );
    expect(accepted.seq).toBe((await broker.heads()).TURNS);
  });
  it('the window in which ids count is the shortest that the server knows', async () => {
    const info = (await asService('tool-executor').nats.request('$JS.API.STREAM.INFO.TURNS', '', { timeout: DEADLINE_MS })).json<{
      config: { duplicate_window: number };
    }>();
    expect(info.config.duplicate_window).toBe(100_000_000);
  });
  it.each([
    ['Nats-Rollup', 'all', /rollup/],
    ['Nats-Rollup', 'sub', /rollup/],
    ['Nats-Expected-Last-Sequence', '0', /wrong last sequence/],
    ['Nats-Expected-Stream', 'LOG', /expected stream/],
  ])('%s: %s is refused and empties nothing', async (name, value, why) => {
    await requestTurn(attacker, turnOf(mallory));
    const state = async () =>
      (await asService('tool-executor').nats.request('$JS.API.STREAM.INFO.TURNS', '', { timeout: DEADLINE_MS })).json<{
        state: { messages: number };
      }>().state.messages;
    const before = await state();
    expect((await requestTurn(attacker, turnOf(mallory), { [name]: value })).error?.description).toMatch(why);
    expect(await state()).toBe(before);
    await drainOwnRequests();
  });
  it('a request over the limit is refused to its sender and stored nowhere', async () => {
    const reached = await broker.reachedBy(attacker, async () => {
      expect((await requestTurn(attacker, turnOf(mallory), { a: 'b' }, 'x'.repeat(REQUEST_BYTES_MAX + 1))).error?.description).toMatch(
        /size exceeds/,
      );
    });
    expect(reached).toEqual(NOTHING);
  });
});

describe('logging in', () => {
  const attempt = (options: object) => connect({ servers: broker.stack.natsUrl, reconnect: false, ...options });
  it('is refused without a name, with a wrong password, and with the password of another', async () => {
    const { user, password } = broker.stack.credentials.principal('tenant', mallory.principal);
    const allowed = await attempt({ user, pass: password });
    await allowed.close();
    for (const options of [
      {},
      { user, pass: 'guess' },
      { user: 'authorizer', pass: password },
      { user: 'provisioner', pass: password },
      { user: 'sys', pass: 'sys' },
    ]) {
      await expect(attempt(options)).rejects.toThrow(/Authorization/i);
    }
  });
});

describe('a service that was taken over', () => {
  const LOG = namespaceSubject('log', 'tenant', 'grant', 'g1');
  const LEDGER = namespaceSubject('ledger', 'tenant', 'use', 'g1', '1');
  it.each([
    ['tool-executor', LOG],
    ['messaging-router', LOG],
    ['audit-projector', LOG],
    ['audit-projector', LEDGER],
    ['authorizer', LEDGER],
    ['authorizer', resultOf(bob)],
    ['audit-projector', resultOf(bob)],
    ['authorizer', turnOf(bob)],
    ['tool-executor', principalSubject('grant.issue', 'tenant', bob.principal)],
    ['tool-executor', namespaceSubject('feed.audit', 'tenant', 'allowed', 'tool', 'invoked')],
    ['tool-executor', '$JS.API.STREAM.PURGE.LEDGER'],
    ['authorizer', '$JS.API.STREAM.DELETE.LOG'],
    ['authorizer', '$JS.API.STREAM.UPDATE.LOG'],
    ['messaging-router', '$JS.API.CONSUMER.MSG.NEXT.TURNS.tool-executor'],
    ['audit-projector', '$JS.API.STREAM.MSG.DELETE.AUDIT'],
    ['audit-projector', '_INBOX_SERVICE.tool-executor.x'],
  ] as const)('%s cannot publish on %s', async (service, subject) =>
    expect(await broker.reachedBy(attacker, () => refusedPublish(asService(service), subject))).toEqual(NOTHING),
  );
  it.each(SERVICE_NAMES)('%s hears no inbox but its own', async (service) => {
    for (const subject of [
      '_INBOX_SERVICE.>',
      '_INBOX.>',
      '_R_.>',
      ...INBOXES.filter((prefix) => !prefix.endsWith(`.${service}`)).map((prefix) => `${prefix}.>`),
    ])
      await refusedSubscribe(asService(service), subject);
  });
});

/** Takes the attacker's requests out of the queue again: it holds 50 of one principal. */
const drainOwnRequests = async (): Promise<void> => {
  const executor = asService('tool-executor').nats;
  const inbox = `_INBOX_SERVICE.tool-executor.drain${Math.random().toString(36).slice(2)}`;
  const taken = executor.subscribe(inbox);
  const lane = { namespaceId: 'tenant', verb: 'turn.request' } as const;
  const consumer = laneConsumer(lane);
  const config = {
    durable_name: consumer,
    name: consumer,
    filter_subject: laneFilter(lane),
    ack_policy: 'explicit',
    deliver_policy: 'all',
  };
  const create = `$JS.API.CONSUMER.CREATE.TURNS.${consumer}.${laneFilter(lane)}`;
  await executor.request(create, JSON.stringify({ stream_name: 'TURNS', config }), { timeout: DEADLINE_MS });
  executor.publish(`$JS.API.CONSUMER.MSG.NEXT.TURNS.${consumer}`, JSON.stringify({ batch: 100, no_wait: true }), { reply: inbox });
  for await (const message of taken) {
    if (message.headers?.code === 404 || message.headers?.code === 408) break;
    message.respond('+ACK');
  }
  await executor.flush();
};
