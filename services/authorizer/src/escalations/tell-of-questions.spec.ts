import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Address, MessageDeliver, revisionOf } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { alice, bob, carol, settled } from '../authorizer.fixture.ts';
import { BackgroundQueue } from './background-queue.ts';
import { aboutCall, askedWorld, named, question } from './escalations.fixture.ts';
import { openWebhooks, tellerSettings } from './open-teller.ts';
import { tellAgain } from './tell-again.ts';
import { type NoticeMessage, QuestionTeller, type TellPorts } from './tell-of-questions.ts';
import { DELIVERY_HEADER, type Webhook, sendToWebhook, signatureOf } from './webhook.ts';

const DEADLINE_MS = 20_000;
const SECRET = Buffer.from('a secret of more than thirty-two bytes');
const AT = Date.parse('2026-01-01T12:00:00Z');

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});
/** A server that answers with these codes, one after the other and the last one for ever; `undefined`: never. */
const serverThat = async (...codes: readonly (number | undefined)[]) => {
  const ids: string[] = [];
  const server = createServer((request, response) => {
    ids.push(String(request.headers[DELIVERY_HEADER]));
    const code = codes[Math.min(ids.length, codes.length) - 1];
    if (code !== undefined) response.writeHead(code, code === 302 ? { location: '/elsewhere' } : {}).end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const webhook: Webhook = {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`),
    secret: SECRET,
    timeoutMs: 200,
  };
  return { ids, webhook };
};
const send = (webhook: Webhook) =>
  sendToWebhook(webhook, { id: 'notice-1', namespaceId: 'w1', notice: {} as never }, AT, new AbortController().signal);

const teller = (more: Partial<TellPorts> = {}) => {
  const delivered: NoticeMessage[] = [];
  const logged: string[] = [];
  const telling = new QuestionTeller({
    deliver: async (message) => {
      delivered.push(message);
      return 'done';
    },
    reviewersOf: async () => [],
    webhookOf: () => undefined,
    clock: () => AT,
    log: (event) => void logged.push(event),
    ...more,
  });
  const receivers = (): readonly Address[] => delivered.map(({ envelope }) => envelope.receiver);
  return { telling, delivered, logged, receivers };
};
const answered = { status: 'refused', question, answer: { at: '2026-01-01T12:00:01.000Z', by: alice, reason: 'no' } } as const;

describe('a question', () => {
  it('is told to who is asked, to the owner, and to whom it lets review, once each; never to who asks', async () => {
    const { telling, receivers, delivered } = teller({ reviewersOf: async () => [carol, alice, bob] });
    telling.opened('w1', question);
    await waitFor('the notices', async () => receivers().length >= 2, DEADLINE_MS);
    await telling.stop();
    expect(receivers()).toEqual([alice, carol]);
    for (const { context, envelope } of delivered)
      expect(MessageDeliver.schema.safeParse({ context, envelope, callId: 'notice', turnId: envelope.id }).success).toBe(true);
  });

  it('is told without the arguments of its call', async () => {
    const { telling, delivered, receivers } = teller();
    telling.opened('w1', aboutCall('a'.repeat(64)));
    await waitFor('the notice', async () => receivers().length > 0, DEADLINE_MS);
    expect(JSON.stringify(delivered)).toContain('files.read');
    expect(JSON.stringify(delivered)).not.toContain('Plan');
  });

  it('is told the same by whoever tells it', async () => {
    const [one, other] = [teller(), teller()];
    for (const { telling } of [one, other]) telling.opened('w1', question);
    await waitFor('both', async () => one.receivers().length + other.receivers().length >= 2, DEADLINE_MS);
    expect(one.delivered).toEqual(other.delivered);
  });

  it('is told once it can be said who reviews it', async () => {
    let asked = 0;
    const { telling, receivers } = teller({
      reviewersOf: async () => {
        asked += 1;
        if (asked < 2) throw new Error('behind');
        return [carol];
      },
    });
    telling.opened('w1', question);
    await waitFor('the notices', async () => receivers().length >= 2, DEADLINE_MS);
  });
});

describe('an answer', () => {
  it('is told to who asked, with who gave it and why', async () => {
    const { telling, delivered, receivers } = teller();
    telling.answered('w1', answered, revisionOf('log', 7));
    await waitFor('the notice', async () => receivers().length > 0, DEADLINE_MS);
    expect(receivers()).toEqual([bob]);
    expect(delivered[0]?.envelope).toMatchObject({
      createdAt: '2026-01-01T12:00:01.000Z',
      payload: { escalation: { status: 'refused', answer: { by: alice, reason: 'no' } } },
    });
  });

  it('that is a withdrawal is told to nobody', async () => {
    const { telling, receivers } = teller();
    telling.answered('w1', { ...answered, status: 'withdrawn' }, revisionOf('log', 7));
    await telling.stop();
    expect(receivers()).toEqual([]);
  });
});

describe('a process that starts', () => {
  it('tells once more what was asked and answered lately, as it was told', async () => {
    const asked = await askedWorld();
    for (const id of ['old', 'open', 'refused', 'approved']) {
      const at = id === 'old' ? '2026-01-01T11:00:00.000Z' : '2026-01-01T12:00:00.000Z';
      await asked.open({ ...named, id, requestedAt: at });
    }
    await asked.resolve({ answer: 'refuse' }, { escalationId: 'refused' });
    await asked.resolve({ answer: 'approve' }, { escalationId: 'approved' });
    await settled();
    const { told, revisions } = asked;
    const [before, known] = [new Set(told), new Map(revisions)];
    told.length = 0;
    revisions.clear();
    tellAgain(asked.world.ports, asked.tidings, AT - 1_000);
    expect(told.toSorted()).toEqual(['approved approved', 'opened open', 'refused refused']);
    for (const line of told) expect(before).toContain(line);
    expect(revisions).toEqual(known);
    await asked.close();
  });
});

describe('a webhook', () => {
  it('that never answers holds up no inbox, and is given up', async () => {
    const { webhook, ids } = await serverThat(undefined);
    const { telling, receivers, logged } = teller({ webhookOf: () => webhook });
    telling.opened('w1', question);
    telling.answered('w1', answered, revisionOf('log', 7));
    await waitFor('the inboxes', async () => receivers().length === 2, DEADLINE_MS);
    await waitFor('the first attempt', async () => ids.length > 0, DEADLINE_MS);
    await telling.stop();
    expect(logged).toContain('webhook not told');
  });

  it.each([
    ['takes it', [204], 'done'],
    ['is in trouble', [503], 'again'],
    ['is asked too much', [429], 'again'],
    ['refuses it', [400], 'given up'],
    ['sends it elsewhere, which nobody follows', [302], 'given up'],
    ['does not answer in time', [undefined], 'again'],
  ] as const)('that %s', async (_, codes, outcome) => {
    const { webhook, ids } = await serverThat(...codes);
    expect(await send(webhook)).toBe(outcome);
    expect(ids).toEqual(['notice-1']);
  });

  it('that is not there', async () => {
    const { webhook } = await serverThat(204);
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
    expect(await send(webhook)).toBe('again');
  });

  it('is signed for the second it is sent in', () => {
    expect(signatureOf('{}', SECRET, AT)).toMatch(/^t=1767268800,v1=[0-9a-f]{64}$/);
    expect(signatureOf('{}', SECRET, AT + 999)).toBe(signatureOf('{}', SECRET, AT));
    expect(new Set([signatureOf('{}', SECRET, AT + 1_000), signatureOf('[]', SECRET, AT), signatureOf('{}', SECRET, AT)]).size).toBe(3);
  });
});

describe('work that nobody waits for', () => {
  const queueOf = (work: () => Promise<'done' | 'again' | 'given up'>, waitingMax = 2) => {
    const givenUp: number[] = [];
    const queue = new BackgroundQueue<number>({
      work,
      waitingMax,
      attemptsMax: 3,
      backoffMostMs: 1,
      onGivenUp: (item) => void givenUp.push(item),
    });
    return { queue, givenUp };
  };

  it('is tried so often, and no more', async () => {
    let tried = 0;
    const { queue, givenUp } = queueOf(async () => {
      tried += 1;
      return 'again';
    });
    queue.add(1);
    await queue.idle();
    expect([tried, givenUp]).toEqual([3, [1]]);
  });

  it('is bounded: one more than may wait is given up at once', async () => {
    const { promise: held, resolve: go } = Promise.withResolvers<'done'>();
    const { queue, givenUp } = queueOf(() => held);
    for (const item of [1, 2, 3, 4]) queue.add(item);
    expect(givenUp).toEqual([4]);
    go('done');
    await queue.idle();
    expect(givenUp).toEqual([4]);
  });

  it('that waits still when it is stopped is given up', async () => {
    const { promise: held, resolve: go } = Promise.withResolvers<'done'>();
    const { queue, givenUp } = queueOf(() => held);
    for (const item of [1, 2]) queue.add(item);
    const stopped = queue.stop();
    go('done');
    await stopped;
    queue.add(3);
    expect(givenUp).toEqual([2, 3]);
  });
});

describe('the settings of webhooks', () => {
  const openedWith = async (stated: Record<string, string>, secret = SECRET) => {
    const folder = await mkdtemp(join(tmpdir(), 'sharedos-secret-'));
    const file = join(folder, 'secret');
    await writeFile(file, secret);
    const settings = z.object(tellerSettings).parse({
      SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE: file,
      SHAREDOS_ESCALATION_WEBHOOK_HOSTS: 'hooks.example, 127.0.0.1:8080',
      ...stated,
    });
    const opened = await openWebhooks(settings);
    await rm(folder, { recursive: true });
    return opened.ok ? [...opened.value].map(([namespaceId, { url }]) => `${namespaceId} ${url.href}`) : opened.error;
  };

  it('may be left out, and then nothing is told there', async () => expect(await openedWith({})).toEqual([]));
  it.each([
    ['{"w1":"https://hooks.example/a"}', ['w1 https://hooks.example/a']],
    ['{"w1":"http://127.0.0.1:8080/a"}', ['w1 http://127.0.0.1:8080/a']],
  ])('name a URL for each namespace: %s', async (urls, opened) =>
    expect(await openedWith({ SHAREDOS_ESCALATION_WEBHOOKS: urls })).toEqual(opened),
  );
  it.each([
    ['{"w1":"https://evil.example/a"}', /^SHAREDOS_ESCALATION_WEBHOOK_HOSTS must name evil\.example/],
    ['{"w1":"https://hooks.example:8443/a"}', /^SHAREDOS_ESCALATION_WEBHOOK_HOSTS must name hooks\.example:8443/],
    ['{"w1":"http://hooks.example/a"}', /^SHAREDOS_ESCALATION_WEBHOOKS must tell w1 by https/],
    ['{"w1":"nowhere"}', /^SHAREDOS_ESCALATION_WEBHOOKS must be JSON/],
    ['["https://hooks.example"]', /^SHAREDOS_ESCALATION_WEBHOOKS must be JSON/],
  ])('are refused, with the setting that is wrong: %s', async (urls, message) =>
    expect(await openedWith({ SHAREDOS_ESCALATION_WEBHOOKS: urls })).toMatch(message),
  );
  it('need a secret that is one', async () => {
    const urls = { SHAREDOS_ESCALATION_WEBHOOKS: '{"w1":"https://hooks.example/a"}' };
    expect(await openedWith(urls, Buffer.from('short'))).toMatch(/^SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE must be readable/);
    expect(await openedWith({ ...urls, SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE: '/nowhere' })).toMatch(/must be readable/);
  });
});
