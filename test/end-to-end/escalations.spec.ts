import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus } from '@sharedos/bus';
import type { AgentStep, RunningAgent } from '@sharedos/client';
import {
  type Address,
  type Capability,
  type EscalationItem,
  type EscalationNotice,
  EscalationOpen,
  EscalationOpenReply,
  type EscalationQuestion,
  type EscalationResolution,
  type Json,
  NOTICE_SENDER,
  hashOf,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, AUDITOR, BOB, NAMESPACE, PRINCIPALS, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 30_000;

let system: TestSystem;
let agent: RunningAgent | undefined;
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

/** Scout does what the message of its turn says: it asks a person, or reads a file and answers what it was told. */
const scout = ({ turn, input, call, complete, escalate }: AgentStep) => {
  if (input.type === 'tool_result')
    return complete(input.result.status === 'succeeded' ? { found: input.result.output } : { refused: input.result.error.code });
  const task = turn.message.payload as { readonly ask?: string; readonly read?: string; readonly write?: readonly [string, string] };
  if (task.ask !== undefined) return escalate(task.ask);
  if (task.write === undefined) return call('files.read', { path: (task.read ?? '').split('/') });
  const [path, content] = task.write;
  return call('files.append', { path: path.split('/'), content });
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
  system = await startTestSystem({
    principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CAROL }],
    replicas: { authorizer: 2, 'tool-executor': 2 },
    env: (service) =>
      service === 'authorizer' ? authorizer : service === 'tool-executor' ? { SHAREDOS_TOOL_NAMESPACES: 'files,sharedos' } : {},
  });
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk', 'private/diary.md': 'Dear diary' });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] });
  await system.grant('ask', { namespace: 'sharedos', path: ['escalation'], actions: ['request'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const registered = await (
    await system.client(ALICE)
  ).agents.register({ agentId: SCOUT.agentId, authority: ALICE, owner: ALICE, runtime: { runtime: 'remote', config: {} } });
  expect(registered).toMatchObject({ ok: true, value: { agent: { status: 'active' } } });
  const running = await (await system.client(SCOUT)).agent(scout);
  if (!running.ok) throw new Error('scout does not run');
  agent = running.value;
}, 120_000);
afterAll(async () => {
  await agent?.stop();
  await system?.stop();
  await hook?.stop();
});

/** A turn of scout with this task; its traces are told apart by `name`. */
const turn = async (name: string, payload: Json) =>
  (await system.run({ executionId: name, traceId: `trace-${name}`, calls: [], payload, options: { maxSteps: 3 } })).result;

/** The one open question that alice is asked for this reason. */
const questionFor = async (reason: string, as: Address = ALICE): Promise<EscalationItem> => {
  const listed = await (await system.client(as)).escalations.list({ status: 'open' });
  const found = listed.ok ? listed.value.escalations.filter(({ question }) => question.reason === reason) : [];
  expect(found).toHaveLength(1);
  return found[0] as EscalationItem;
};

const asks = async (name: string, reason: string): Promise<EscalationItem> => {
  expect(await turn(name, { ask: reason })).toMatchObject({
    status: 'escalated',
    escalation: { reason, reviewer: ALICE, status: 'pending' },
  });
  return questionFor(reason);
};
const resolve = async (id: string, resolution: EscalationResolution, as: Address = ALICE) =>
  (await system.client(as)).escalations.resolve(id, resolution);
const refusedAs = (code: string) => ({ ok: false, error: { kind: 'refused', error: { code } } });
const diary: Capability = { resource: { namespace: 'files', path: ['private', 'diary.md'] }, actions: ['read'], scope: 'exact' };
const withDiary: EscalationResolution = { answer: 'approve', capabilities: [diary] };

/** Puts a question as a host does that knows what it wants, or until when. */
const putAs = async (more: Partial<EscalationQuestion> & Pick<EscalationQuestion, 'id'>): Promise<void> => {
  const { user, password, inboxPrefix } = system.stack.credentials.service('tool-executor');
  const host = await connectBus({ servers: system.stack.natsUrl, user, pass: password, name: 'host', inboxPrefix });
  const question: EscalationQuestion = {
    ...{ requester: SCOUT, owner: ALICE, authority: ALICE, reviewer: ALICE, purpose: 'testing', reason: 'the host asks' },
    ...{ traceId: `trace-${more.id}`, requestedAt: timestampOf(Date.now()) },
    ...more,
  };
  const subject = namespaceSubject('escalation.open', NAMESPACE);
  const opened = await host.request(subject, EscalationOpen, { question }, EscalationOpenReply, { timeoutMs: DEADLINE_MS });
  expect(opened).toMatchObject({ ok: true, value: { ok: true } });
  await host.close();
};

describe('a question that a turn ended on', () => {
  it('is answered with a grant that the next turn of the agent finds, once', async () => {
    const { question } = await asks('first', 'may I read the diary?');
    expect(question).toMatchObject({ requester: SCOUT, owner: ALICE, executionId: 'first', traceId: 'trace-first', purpose: 'testing' });
    expect(await turn('before', { read: 'private/diary.md' })).toMatchObject({ output: { refused: 'no_matching_grant' } });

    const approved = await resolve(question.id, withDiary);
    expect(approved).toMatchObject({ ok: true, value: { escalation: { status: 'approved', grant: { subject: SCOUT, issuer: ALICE } } } });
    expect(JSON.stringify(await turn('after', { read: 'private/diary.md' }))).toContain('Dear diary');
    expect(await turn('once-more', { read: 'private/diary.md' })).toMatchObject({ output: { refused: 'grant_exhausted' } });
  });

  it('is one item however often it is asked while it is open, and another after its answer', async () => {
    const { question } = await asks('again-1', 'may I go on?');
    const { question: again } = await asks('again-2', 'may I go on?');
    expect(again).toEqual(question);
    expect(await resolve(question.id, { answer: 'refuse', reason: 'not now' })).toMatchObject({ ok: true });
    const { question: later } = await asks('again-3', 'may I go on?');
    expect(later).toMatchObject({ id: question.id, executionId: 'again-3' });
    expect(await resolve(question.id, { answer: 'refuse' })).toMatchObject({ ok: true, value: { escalation: { status: 'refused' } } });
  });

  it('is not there for a stranger, who can neither see nor answer it', async () => {
    const { question } = await asks('hidden', 'may I be hidden?');
    const bob = await system.client(BOB);
    expect(await bob.escalations.list()).toMatchObject({ ok: true, value: { escalations: [] } });
    expect(await bob.escalations.show(question.id)).toMatchObject(refusedAs('escalation_not_found'));
    for (const resolution of [{ answer: 'approve' }, { answer: 'refuse' }, { answer: 'withdraw' }] as const)
      expect(await resolve(question.id, resolution, BOB)).toMatchObject(refusedAs('escalation_not_found'));
    expect(await questionFor('may I be hidden?')).toMatchObject({ status: 'open' });
  });

  it('is seen by who asked it, who may take it back and not answer it', async () => {
    const { question } = await asks('withdrawn', 'may I change my mind?');
    expect(await questionFor('may I change my mind?', SCOUT)).toMatchObject({ question });
    for (const resolution of [withDiary, { answer: 'refuse' } as const])
      expect(await resolve(question.id, resolution, SCOUT)).toMatchObject(refusedAs('not_the_reviewer'));
    expect(await resolve(question.id, { answer: 'withdraw' })).toMatchObject(refusedAs('not_the_requester'));
    expect(await resolve(question.id, { answer: 'withdraw' }, SCOUT)).toMatchObject({ ok: true });
    expect(await resolve(question.id, withDiary)).toMatchObject(refusedAs('escalation_answered'));
  });

  it('is answered once: a second answer is refused, whatever it says', async () => {
    const { question } = await asks('answered', 'may I be answered?');
    expect(await resolve(question.id, { answer: 'refuse' })).toMatchObject({ ok: true, value: { escalation: { status: 'refused' } } });
    for (const resolution of [withDiary, { answer: 'refuse' } as const])
      expect(await resolve(question.id, resolution)).toMatchObject(refusedAs('escalation_answered'));
    expect(await (await system.client(ALICE)).escalations.resolve(question.id, { answer: 'withdraw' })).toMatchObject(
      refusedAs('escalation_answered'),
    );
  });

  it('that is approved several times at once, over replicas, is one grant', async () => {
    const { question } = await asks('at-once', 'may we all say yes?');
    const alice = await system.client(ALICE);
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, number) => alice.escalations.resolve(question.id, withDiary, `at-once-${number}`)),
    );
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1);
    for (const refused of answers.filter(({ ok }) => !ok)) expect(refused).toMatchObject(refusedAs('escalation_answered'));
    const held = await (await system.client(SCOUT)).grants.list({ role: 'subject', limit: 100 });
    const ofIt = held.ok ? held.value.grants.filter(({ metadata }) => metadata?.['escalationId'] === question.id) : [];
    expect(ofIt).toHaveLength(1);
  });

  it('leaves a record of the ask and of each answer, without what was given', async () => {
    const { question } = await asks('recorded', 'may I be recorded?');
    const commandId = `answer-${hashOf(question.id).slice(0, 8)}`;
    const alice = await system.client(ALICE);
    expect(await alice.escalations.resolve(question.id, withDiary, commandId)).toMatchObject({ ok: true });
    const records = await system.records('trace-recorded', (found) => found.some(({ type }) => type === 'turn.ended'));
    expect(records.filter(({ type }) => type === 'escalation.requested')).toMatchObject([
      { outcome: 'escalated', reason: 'escalation_requested', operationId: 'recorded', metadata: { resolution: 'pending' } },
    ]);
    const auditor = await system.client(AUDITOR);
    const acts = await waitFor(
      'the records of the answer',
      async () => {
        const read = await auditor.records.query({ type: 'admin.changed', limit: 100 });
        const found = read.ok ? read.value.records.filter(({ event }) => event.operationId === commandId) : [];
        return found.length >= 2 && new Set(found.map(({ event }) => event.action));
      },
      DEADLINE_MS,
    );
    expect(acts).toEqual(new Set(['grant.issue', 'escalation.resolve']));
  });
});

describe('a question that names what it wants', () => {
  const below = (...path: string[]): Capability => ({ resource: { namespace: 'files', path }, actions: ['read'], scope: 'descendants' });

  it('is answered with a part of it, and never with more', async () => {
    await system.files(ALICE, { 'private/letters/first.md': 'Dear you', 'private/letters/last.md': 'Farewell' });
    const requestedAuthority = {
      ...{ id: 'letters', namespaceId: NAMESPACE, requester: SCOUT, owner: ALICE, requestedAt: timestampOf(Date.now()) },
      ...{ capabilities: [below('private', 'letters')], purpose: 'testing' },
    };
    await putAs({ id: 'letters', requestedAuthority });
    const wider: EscalationResolution = { answer: 'approve', capabilities: [below('private')] };
    expect(await resolve('letters', wider)).toMatchObject(refusedAs('wider_than_request'));
    const part: EscalationResolution = { answer: 'approve', capabilities: [below('private', 'letters', 'first.md')], usesMax: 2 };
    expect(await resolve('letters', part)).toMatchObject({ ok: true, value: { escalation: { status: 'narrowed' } } });
    expect(JSON.stringify(await turn('in-part', { read: 'private/letters/first.md' }))).toContain('Dear you');
    expect(await turn('not-all', { read: 'private/letters/last.md' })).toMatchObject({ output: { refused: 'no_matching_grant' } });
  });
});

describe('a call that no grant covers, where the namespace asks its owner about those', () => {
  const append = (name: string, text: string) => turn(name, { write: ['notes/plan.md', text] });
  const answerOf = async (name: string, text: string) => ((await append(name, text)) as { readonly output?: Json }).output;
  const open = async (): Promise<readonly EscalationItem[]> => {
    const listed = await (await system.client(ALICE)).escalations.list({ status: 'open' });
    return listed.ok ? listed.value.escalations.filter(({ question }) => question.call !== undefined) : [];
  };
  const onlyOpen = async (): Promise<EscalationItem['question']> => {
    const items = await open();
    expect(items).toHaveLength(1);
    return (items[0] as EscalationItem).question;
  };

  beforeAll(async () => {
    // The tool is seen by whoever may use it somewhere.
    await system.grant('append-log', { path: ['log.md'], actions: ['append'], scope: 'exact' });
    const set = await (await system.client(ALICE)).settings.set({ asksAboutRefusedCalls: true });
    expect(set).toMatchObject({ ok: true });
  });

  it('is refused, and its exact arguments are there for the owner, and on no record', async () => {
    expect(await answerOf('refused', 'SECRET-A')).toEqual({ refused: 'no_matching_grant' });
    expect(await onlyOpen()).toMatchObject({
      requester: SCOUT,
      reviewer: ALICE,
      call: { tool: 'files.append', arguments: { path: ['notes', 'plan.md'], content: 'SECRET-A' } },
      requestedAuthority: {
        capabilities: [{ resource: { namespace: 'files', path: ['notes', 'plan.md'] }, actions: ['append'], scope: 'exact' }],
      },
    });
    const records = await system.records('trace-refused', (found) => found.some(({ type }) => type === 'turn.ended'));
    expect(records.filter(({ type }) => type === 'escalation.requested')).toMatchObject([
      { outcome: 'escalated', requestedAuthority: { purpose: 'testing' }, operationId: 'refused' },
    ]);
    expect(JSON.stringify(records)).not.toContain('SECRET-A');
  });

  it('is one question however often it is made, and another with other arguments', async () => {
    await append('same', 'SECRET-A');
    await onlyOpen();
    await append('different', 'B');
    const questions = await open();
    expect(questions).toHaveLength(2);
    const other = questions.find(({ question }) => question.call?.arguments['content'] === 'B');
    expect(await resolve(other?.question.id ?? '', { answer: 'refuse' })).toMatchObject({ ok: true });
  });

  it('is allowed by an approval, in a later turn, once; and no other call is', async () => {
    const { id } = await onlyOpen();
    expect(await resolve(id, { answer: 'approve', usesMax: 2 })).toMatchObject(refusedAs('bound_to_one_call'));
    expect(await resolve(id, { answer: 'approve' })).toMatchObject({ ok: true, value: { escalation: { status: 'approved' } } });
    expect(await answerOf('other-arguments', 'C')).toEqual({ refused: 'no_matching_grant' });
    expect(await answerOf('approved', 'SECRET-A')).toMatchObject({ found: {} });
    expect(await answerOf('again', 'SECRET-A')).toEqual({ refused: 'grant_exhausted' });
    const read = await turn('as-written', { read: 'notes/plan.md' });
    expect(JSON.stringify(read)).toContain('Buy milkSECRET-A');
  });

  it('is answered with no more than it asks for', async () => {
    const { id, call } = await onlyOpen();
    expect(call?.arguments).toMatchObject({ content: 'C' });
    const all: Capability = { resource: { namespace: 'files', path: [] }, actions: ['append'], scope: 'descendants' };
    expect(await resolve(id, { answer: 'approve', capabilities: [all] })).toMatchObject(refusedAs('wider_than_request'));
    expect(await resolve(id, { answer: 'refuse' })).toMatchObject({ ok: true });
  });
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
    await turn('told', { write: ['private/told.md', 'T'] });
    const { question } = await questionFor('No grant covers this call of files.append.', CAROL);
    for (const who of [ALICE, CAROL])
      expect(await told(who, question.id, 'open')).toMatchObject({ escalation: { requester: SCOUT, tool: 'files.append' } });
    expect(await resolve(question.id, { answer: 'refuse', reason: 'it is private' }, CAROL)).toMatchObject({ ok: true });
    expect(await told(SCOUT, question.id, 'refused')).toMatchObject({ escalation: { answer: { by: CAROL, reason: 'it is private' } } });
  });

  it('is whoever asked, of a grant and from where on it is there', async () => {
    const { question } = await asks('told-approved', 'may I be told?');
    const approved = await resolve(question.id, withDiary);
    const { revision, escalation } = approved.ok ? approved.value : { revision: '', escalation: undefined };
    expect(await told(SCOUT, question.id, 'approved')).toMatchObject({ revision, escalation: { grantId: escalation?.grant?.id ?? '' } });
  });

  it('is whoever asked, of a question that nobody answered in time', async () => {
    await putAs({ id: 'soon-over', expiresAt: timestampOf(Date.now() + 500) });
    expect(await told(SCOUT, 'soon-over', 'expired')).toMatchObject({ escalation: { answer: { at: expect.any(String) as string } } });
    expect(await resolve('soon-over', withDiary)).toMatchObject(refusedAs('escalation_answered'));
  });

  it('is a webhook, signed, and told again when it did not take it', async () => {
    const { question } = await asks('told-by-hook', 'may the hook know?');
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
    const { question } = await asks('told-again', 'may I hear it twice?');
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
