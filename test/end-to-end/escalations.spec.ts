import { type Capability, type EscalationItem, type EscalationResolution, type Json, hashOf, timestampOf } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AskingScout, refusedAs, startAskingScout, withDiary } from '../support/asking-scout.ts';
import { ALICE, AUDITOR, BOB, NAMESPACE, SCOUT } from '../support/test-system.ts';

const DEADLINE_MS = 30_000;

let scout: AskingScout;
let system: AskingScout['system'];
beforeAll(async () => {
  scout = await startAskingScout();
  ({ system } = scout);
}, 120_000);
afterAll(() => scout?.stop());

describe('a question that a turn ended on', () => {
  it('is answered with a grant that the next turn of the agent finds, once', async () => {
    const { question } = await scout.asks('first', 'may I read the diary?');
    expect(question).toMatchObject({ requester: SCOUT, owner: ALICE, executionId: 'first', traceId: 'trace-first', purpose: 'testing' });
    expect(await scout.turn('before', { read: 'private/diary.md' })).toMatchObject({ output: { refused: 'no_matching_grant' } });

    const approved = await scout.resolve(question.id, withDiary);
    expect(approved).toMatchObject({ ok: true, value: { escalation: { status: 'approved', grant: { subject: SCOUT, issuer: ALICE } } } });
    expect(JSON.stringify(await scout.turn('after', { read: 'private/diary.md' }))).toContain('Dear diary');
    expect(await scout.turn('once-more', { read: 'private/diary.md' })).toMatchObject({ output: { refused: 'grant_exhausted' } });
  });

  it('is one item however often it is asked while it is open, and another after its answer', async () => {
    const { question } = await scout.asks('again-1', 'may I go on?');
    const { question: again } = await scout.asks('again-2', 'may I go on?');
    expect(again).toEqual(question);
    expect(await scout.resolve(question.id, { answer: 'refuse', reason: 'not now' })).toMatchObject({ ok: true });
    const { question: later } = await scout.asks('again-3', 'may I go on?');
    expect(later).toMatchObject({ id: question.id, executionId: 'again-3' });
    expect(await scout.resolve(question.id, { answer: 'refuse' })).toMatchObject({
      ok: true,
      value: { escalation: { status: 'refused' } },
    });
  });

  it('is not there for a stranger, who can neither see nor answer it', async () => {
    const { question } = await scout.asks('hidden', 'may I be hidden?');
    const bob = await system.client(BOB);
    expect(await bob.escalations.list()).toMatchObject({ ok: true, value: { escalations: [] } });
    expect(await bob.escalations.show(question.id)).toMatchObject(refusedAs('escalation_not_found'));
    for (const resolution of [{ answer: 'approve' }, { answer: 'refuse' }, { answer: 'withdraw' }] as const)
      expect(await scout.resolve(question.id, resolution, BOB)).toMatchObject(refusedAs('escalation_not_found'));
    expect(await scout.questionFor('may I be hidden?')).toMatchObject({ status: 'open' });
  });

  it('is seen by who asked it, who may take it back and not answer it', async () => {
    const { question } = await scout.asks('withdrawn', 'may I change my mind?');
    expect(await scout.questionFor('may I change my mind?', SCOUT)).toMatchObject({ question });
    for (const resolution of [withDiary, { answer: 'refuse' } as const])
      expect(await scout.resolve(question.id, resolution, SCOUT)).toMatchObject(refusedAs('not_the_reviewer'));
    expect(await scout.resolve(question.id, { answer: 'withdraw' })).toMatchObject(refusedAs('not_the_requester'));
    expect(await scout.resolve(question.id, { answer: 'withdraw' }, SCOUT)).toMatchObject({ ok: true });
    expect(await scout.resolve(question.id, withDiary)).toMatchObject(refusedAs('escalation_answered'));
  });

  it('is answered once: a second answer is refused, whatever it says', async () => {
    const { question } = await scout.asks('answered', 'may I be answered?');
    expect(await scout.resolve(question.id, { answer: 'refuse' })).toMatchObject({
      ok: true,
      value: { escalation: { status: 'refused' } },
    });
    for (const resolution of [withDiary, { answer: 'refuse' } as const])
      expect(await scout.resolve(question.id, resolution)).toMatchObject(refusedAs('escalation_answered'));
    expect(await (await system.client(ALICE)).escalations.resolve(question.id, { answer: 'withdraw' })).toMatchObject(
      refusedAs('escalation_answered'),
    );
  });

  it('that is approved several times at once, over replicas, is one grant', async () => {
    const { question } = await scout.asks('at-once', 'may we all say yes?');
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
    const { question } = await scout.asks('recorded', 'may I be recorded?');
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
    await scout.put({ id: 'letters', requestedAuthority });
    const wider: EscalationResolution = { answer: 'approve', capabilities: [below('private')] };
    expect(await scout.resolve('letters', wider)).toMatchObject(refusedAs('wider_than_request'));
    const part: EscalationResolution = { answer: 'approve', capabilities: [below('private', 'letters', 'first.md')], usesMax: 2 };
    expect(await scout.resolve('letters', part)).toMatchObject({ ok: true, value: { escalation: { status: 'narrowed' } } });
    expect(JSON.stringify(await scout.turn('in-part', { read: 'private/letters/first.md' }))).toContain('Dear you');
    expect(await scout.turn('not-all', { read: 'private/letters/last.md' })).toMatchObject({ output: { refused: 'no_matching_grant' } });
  });
});

describe('a call that no grant covers, where the namespace asks its owner about those', () => {
  const append = (name: string, text: string) => scout.turn(name, { write: ['notes/plan.md', text] });
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
    expect(await scout.resolve(other?.question.id ?? '', { answer: 'refuse' })).toMatchObject({ ok: true });
  });

  it('is allowed by an approval, in a later turn, once; and no other call is', async () => {
    const { id } = await onlyOpen();
    expect(await scout.resolve(id, { answer: 'approve', usesMax: 2 })).toMatchObject(refusedAs('bound_to_one_call'));
    expect(await scout.resolve(id, { answer: 'approve' })).toMatchObject({ ok: true, value: { escalation: { status: 'approved' } } });
    expect(await answerOf('other-arguments', 'C')).toEqual({ refused: 'no_matching_grant' });
    expect(await answerOf('approved', 'SECRET-A')).toMatchObject({ found: {} });
    expect(await answerOf('again', 'SECRET-A')).toEqual({ refused: 'grant_exhausted' });
    const read = await scout.turn('as-written', { read: 'notes/plan.md' });
    expect(JSON.stringify(read)).toContain('Buy milkSECRET-A');
  });

  it('is answered with no more than it asks for', async () => {
    const { id, call } = await onlyOpen();
    expect(call?.arguments).toMatchObject({ content: 'C' });
    const all: Capability = { resource: { namespace: 'files', path: [] }, actions: ['append'], scope: 'descendants' };
    expect(await scout.resolve(id, { answer: 'approve', capabilities: [all] })).toMatchObject(refusedAs('wider_than_request'));
    expect(await scout.resolve(id, { answer: 'refuse' })).toMatchObject({ ok: true });
  });
});
