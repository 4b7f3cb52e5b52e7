import { connectBus } from '@sharedos/bus';
import type { AgentStep } from '@sharedos/client';
import {
  type Address,
  type Capability,
  type EscalationItem,
  EscalationOpen,
  EscalationOpenReply,
  type EscalationQuestion,
  type EscalationResolution,
  type ExecutionResult,
  type Json,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import { expect } from 'vitest';
import { ALICE, AUDITOR, NAMESPACE, SCOUT, type TestSystem, type TestSystemOptions, startTestSystem } from './test-system.ts';

const ANSWER_MS = 30_000;

/** What the message of a turn tells scout to do: ask a person, append to a file, or read one and answer what came of it. */
export interface Task {
  readonly ask?: string;
  readonly read?: string;
  readonly write?: readonly [path: string, content: string];
}

/** The system with an agent that asks: scout, who works for alice and may read her notes. */
export interface AskingScout {
  readonly system: TestSystem;
  /** A turn of scout with this task; its trace is told apart by `name`. */
  turn(name: string, task: Task): Promise<ExecutionResult>;
  /** The one open question that somebody is asked for this reason. Fails the test when there is another number of them. */
  questionFor(reason: string, as?: Address): Promise<EscalationItem>;
  /** Ends a turn on a question, and finds it. */
  asks(name: string, reason: string): Promise<EscalationItem>;
  resolve(id: string, resolution: EscalationResolution, as?: Address): ReturnType<TestSystemClient['escalations']['resolve']>;
  /** Puts a question as a host does that knows what it wants, or until when. */
  put(question: Partial<EscalationQuestion> & Pick<EscalationQuestion, 'id'>): Promise<void>;
  stop(): Promise<void>;
}
type TestSystemClient = Awaited<ReturnType<TestSystem['client']>>;

export const refusedAs = (code: string) => ({ ok: false, error: { kind: 'refused', error: { code } } });

const diary: Capability = { resource: { namespace: 'files', path: ['private', 'diary.md'] }, actions: ['read'], scope: 'exact' };
/** Yes: to reading the diary. */
export const withDiary: EscalationResolution = { answer: 'approve', capabilities: [diary] };

const scout = ({ turn, input, call, complete, escalate }: AgentStep) => {
  if (input.type === 'tool_result')
    return complete(input.result.status === 'succeeded' ? { found: input.result.output } : { refused: input.result.error.code });
  const task = turn.message.payload as Task;
  if (task.ask !== undefined) return escalate(task.ask);
  if (task.write === undefined) return call('files.read', { path: (task.read ?? '').split('/') });
  const [path, content] = task.write;
  return call('files.append', { path: path.split('/'), content });
};

export const startAskingScout = async (options: TestSystemOptions = {}): Promise<AskingScout> => {
  const system = await startTestSystem({ replicas: { authorizer: 2, 'tool-executor': 2 }, ...options });
  try {
    return await askingIn(system);
  } catch (error) {
    await system.stop();
    throw error;
  }
};

const askingIn = async (system: TestSystem): Promise<AskingScout> => {
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk', 'private/diary.md': 'Dear diary' });
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] });
  // The tool is seen by whoever may use it somewhere.
  await system.grant('append-log', { path: ['log.md'], actions: ['append'], scope: 'exact' });
  await system.grant('ask', { namespace: 'sharedos', path: ['escalation'], actions: ['request'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const terms = { agentId: SCOUT.agentId, authority: ALICE, owner: ALICE, runtime: { runtime: 'remote', config: {} } };
  expect(await (await system.client(ALICE)).agents.register(terms)).toMatchObject({ ok: true, value: { agent: { status: 'active' } } });
  const running = await (await system.client(SCOUT)).agent(scout);
  if (!running.ok) throw new Error('scout does not run');

  const turn: AskingScout['turn'] = async (name, task) =>
    (
      await system.run({
        executionId: name,
        traceId: `trace-${name}`,
        calls: [],
        payload: task as unknown as Json,
        options: { maxSteps: 3 },
      })
    ).result;
  const questionFor: AskingScout['questionFor'] = async (reason, as = ALICE) => {
    const listed = await (await system.client(as)).escalations.list({ status: 'open' });
    const found = listed.ok ? listed.value.escalations.filter(({ question }) => question.reason === reason) : [];
    expect(found).toHaveLength(1);
    return found[0] as EscalationItem;
  };
  return {
    system,
    turn,
    questionFor,
    asks: async (name, reason) => {
      const escalation = { reason, reviewer: ALICE, status: 'pending' };
      expect(await turn(name, { ask: reason })).toMatchObject({ status: 'escalated', escalation });
      return questionFor(reason);
    },
    resolve: async (id, resolution, as = ALICE) => (await system.client(as)).escalations.resolve(id, resolution),
    put: async (more) => {
      const { user, password, inboxPrefix } = system.stack.credentials.service('tool-executor');
      const host = await connectBus({ servers: system.stack.natsUrl, user, pass: password, name: 'host', inboxPrefix });
      const question: EscalationQuestion = {
        ...{ requester: SCOUT, owner: ALICE, authority: ALICE, reviewer: ALICE, purpose: 'testing', reason: 'the host asks' },
        ...{ traceId: `trace-${more.id}`, requestedAt: timestampOf(Date.now()) },
        ...more,
      };
      const subject = namespaceSubject('escalation.open', NAMESPACE);
      const opened = await host.request(subject, EscalationOpen, { question }, EscalationOpenReply, { timeoutMs: ANSWER_MS });
      expect(opened).toMatchObject({ ok: true, value: { ok: true } });
      await host.close();
    },
    stop: async () => {
      await running.value.stop();
      await system.stop();
    },
  };
};
