import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Address, type EscalationItem, type EscalationNotice, NOTICE_SENDER, timestampOf } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AskingScout, refusedAs, startAskingScout, withDiary } from '../support/asking-scout.ts';
import { ALICE, NAMESPACE, PRINCIPALS, SCOUT } from '../support/test-system.ts';

const DEADLINE_MS = 30_000;

let scout: AskingScout;
let system: AskingScout['system'];
let hook: Hook;
/** The environment of every authorizer. */
let authorizer: Readonly<Record<string, string>>;

const CAROL = { kind: 'human', userId: 'carol' } as const satisfies Address;
const SECRET = 'a secret of more than thirty-two bytes';

interface Heard {
  readonly signature: string;
  readonly body: string;
  readonly notice: EscalationNotice;
}

/** Whoever is told by the webhook: it refuses every first attempt of a notice. */
interface Hook {
  readonly folder: string;
  readonly host: string;
  readonly heard: Heard[];
  stop(): Promise<void>;
}

const startHook = async (): Promise<Hook> => {
  const heard: Heard[] = [];
  const seen = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const id = String(request.headers['sharedos-delivery']);
      const body = Buffer.concat(chunks).toString('utf8');
      const isFirst = !seen.has(id);
      seen.add(id);
      if (!isFirst)
        heard.push({ signature: String(request.headers['sharedos-signature']), body, notice: JSON.parse(body) as EscalationNotice });
      response.writeHead(isFirst ? 503 : 204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-hook-'));
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, host: `127.0.0.1:${(server.address() as AddressInfo).port}`, heard, stop };
};

beforeAll(async () => {
  hook = await startHook();
  const secretFile = join(hook.folder, 'secret');
  await writeFile(secretFile, SECRET);
  authorizer = {
    SHAREDOS_ESCALATION_WEBHOOKS: JSON.stringify({ [NAMESPACE]: `http://${hook.host}/questions` }),
    SHAREDOS_ESCALATION_WEBHOOK_HOSTS: hook.host,
    SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE: secretFile,
  };
  scout = await startAskingScout({
    principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CAROL }],
    env: (service) => (service === 'authorizer' ? authorizer : {}),
  });
  ({ system } = scout);
  expect(await (await system.client(ALICE)).settings.set({ asksAboutRefusedCalls: true })).toMatchObject({ ok: true });
}, 120_000);
afterAll(async () => {
  await scout?.stop();
  await hook?.stop();
});

describe('who is told', () => {
  /** What the inbox of somebody says of a question, once it says what is looked for. */
  const told = (who: Address, id: string, status: EscalationItem['status']): Promise<EscalationNotice> =>
    waitFor(
      `a notice that ${id} is ${status}`,
      async () => {
        const inbox = await (await system.client(who)).messages.inbox({ limit: 100 });
        const notices = inbox.ok ? inbox.value.filter(({ message }) => message.sender.kind === 'service') : [];
        const found = notices.filter(({ message }) => {
          const { escalation } = message.payload as EscalationNotice;
          return escalation.id === id && escalation.status === status;
        });
        expect(found.length).toBeLessThanOrEqual(1);
        const [notice] = found;
        if (notice === undefined) return false;
        expect(notice.message).toMatchObject({ sender: NOTICE_SENDER, receiver: who, purpose: 'testing' });
        return notice.message.payload as EscalationNotice;
      },
      DEADLINE_MS,
    );

  it('is the owner, and whom it lets review, who then answers in its place', async () => {
    const review = { namespace: 'sharedos', path: ['escalation'], actions: ['review'] };
    await system.grant('carol-reviews', review, { to: CAROL });
    await scout.turn('told', { write: ['private/told.md', 'SECRET-A'] });
    const { question } = await scout.questionFor('No grant covers this call of files.append.', CAROL);
    for (const who of [ALICE, CAROL])
      expect(await told(who, question.id, 'open')).toMatchObject({ escalation: { requester: SCOUT, tool: 'files.append' } });
    expect(await scout.resolve(question.id, { answer: 'refuse', reason: 'it is private' }, CAROL)).toMatchObject({ ok: true });
    expect(await told(SCOUT, question.id, 'refused')).toMatchObject({ escalation: { answer: { by: CAROL, reason: 'it is private' } } });
  });

  it('is whoever asked, of a grant and from where on it is there', async () => {
    const { question } = await scout.asks('told-approved', 'may I be told?');
    const approved = await scout.resolve(question.id, withDiary);
    const { revision, escalation } = approved.ok ? approved.value : { revision: '', escalation: undefined };
    expect(await told(SCOUT, question.id, 'approved')).toMatchObject({ revision, escalation: { grantId: escalation?.grant?.id ?? '' } });
  });

  it('is whoever asked, of a question that nobody answered in time', async () => {
    await scout.put({ id: 'soon-over', expiresAt: timestampOf(Date.now() + 500) });
    expect(await told(SCOUT, 'soon-over', 'expired')).toMatchObject({ escalation: { answer: { at: expect.any(String) as string } } });
    expect(await scout.resolve('soon-over', withDiary)).toMatchObject(refusedAs('escalation_answered'));
  });

  it('is a webhook, signed, and told again when it did not take it', async () => {
    const { question } = await scout.asks('told-by-hook', 'may the hook know?');
    const { signature, body, notice } = await waitFor(
      'the webhook',
      async () => hook.heard.find(({ notice: { escalation } }) => escalation.id === question.id) ?? false,
      DEADLINE_MS,
    );
    expect(notice).toMatchObject({ escalation: { status: 'open', requester: SCOUT, reason: 'may the hook know?' } });
    const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
    expect(mac).toBe(
      createHmac('sha256', SECRET)
        .update(`${String(seconds)}.${body}`)
        .digest('hex'),
    );
    expect(hook.heard.map((heard) => heard.body).join()).not.toContain('SECRET-A');
  });

  it('is told once more by an authorizer that starts, and finds it once', async () => {
    const { question } = await scout.asks('told-again', 'may I hear it twice?');
    const heard = () => hook.heard.filter(({ notice: { escalation } }) => escalation.id === question.id).length;
    await waitFor('the webhook', async () => heard() === 1, DEADLINE_MS);
    await told(ALICE, question.id, 'open');
    await system.stack.startService('authorizer', { env: authorizer });
    await waitFor('the webhook, again', async () => heard() === 2, DEADLINE_MS);
    await told(ALICE, question.id, 'open');
    const sent = (await system.records('trace-told-again')).filter(({ type }) => type === 'message.sent');
    expect(sent.map(({ outcome }) => outcome)).not.toContain('denied');
  });
});
