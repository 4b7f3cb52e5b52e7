import { type AuditTail, type Gap, type NewTurn, type ScriptedCall, type TurnAnswer, newTurn } from '@sharedos/client';
import {
  type Address,
  type AgentAddress,
  type AuditEvent,
  type CapabilityConstraints,
  addressPath,
  timestampOf,
} from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { folderSnapshot } from '../support/folder-snapshot.ts';
import { ALICE, AUDITOR, BOB, NAMESPACE, PRINCIPALS, type Right, type TestSystem, startTestSystem } from '../support/test-system.ts';

const CAROL = { kind: 'human', userId: 'carol' } as const satisfies Address;
const DEADLINE_MS = 15_000;

let system: TestSystem;
let before: Awaited<ReturnType<typeof folderSnapshot>>;
let tail: AuditTail;
/** What the auditor heard live, by record id. */
const feed = new Map<string, AuditEvent>();
const gaps: Gap[] = [];

beforeAll(async () => {
  system = await startTestSystem({ principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CAROL }] });
  await system.files(ALICE, {
    'notes/plan.md': 'Buy milk\nand bread',
    'notes/later/trip.md': 'Milk for the trip',
    'private/diary.md': 'Nobody reads this milk',
    'inbox/one.md': 'one',
  });
  await system.files(BOB, { 'notes/plan.md': 'The plan of bob' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  const tailing = await (
    await system.client(AUDITOR)
  ).audit.tail({ onRecord: (event) => void feed.set(event.id, event), onGap: (gap) => void gaps.push(gap) });
  if (!tailing.ok) throw new Error(JSON.stringify(tailing.error));
  tail = tailing.value;
  before = await folderSnapshot(system.stack.filesRoot);
});
afterAll(async () => {
  await tail?.stop();
  await system?.stop();
});
// No call of this file may change a file: each is a read, or is refused.
afterEach(async () => expect(await folderSnapshot(system.stack.filesRoot)).toEqual(before));

interface Held extends Right {
  readonly id?: string;
  readonly constraints?: CapabilityConstraints;
}

const NOTES: Held = { path: ['notes'], actions: ['read', 'search'] };
/** Makes a tool visible, and useful for nothing that the tests ask for. */
const elsewhere = (...actions: string[]): Held => ({ path: ['inbox'], actions });

const read = (...path: string[]): ScriptedCall => ({ tool: 'files.read', arguments: { path } });
const create = (...path: string[]): ScriptedCall => ({ tool: 'files.create', arguments: { path, content: 'written' } });
const PLAN = read('notes', 'plan.md');
const DIARY = read('private', 'diary.md');

const invoke = (agent: Address): Right => ({
  namespace: 'sharedos.execution',
  path: addressPath(agent),
  actions: ['invoke'],
  scope: 'exact',
});

/** An agent that alice may run, holding just these grants of hers: what one test gives, no other test sees. */
const givenAgent = async (agentId: string, ...grants: readonly Held[]): Promise<AgentAddress> => {
  const agent: AgentAddress = { kind: 'agent', agentId };
  await system.grant(`${agentId}-run`, invoke(agent), { to: agent });
  for (const [index, { id = `${agentId}-${index}`, constraints, ...right }] of grants.entries()) {
    await system.grant(id, right, { to: agent, ...(constraints === undefined ? {} : { constraints }) });
  }
  return agent;
};

/** Runs one turn whose trace is named for what it shows. */
const turn = (agent: AgentAddress, traceId: string, calls: readonly ScriptedCall[], more: Partial<NewTurn> = {}): Promise<TurnAnswer> =>
  system.run({ agent, traceId, calls, ...more });

/** How each call of a turn was answered: its output, or the code of its refusal. */
const answers = ({ result }: TurnAnswer): readonly unknown[] => {
  if (result.status !== 'succeeded')
    throw new Error(`the turn ended ${result.status}: ${JSON.stringify('error' in result ? result.error : undefined)}`);
  const { calls } = result.output as unknown as { calls: { status: string; code?: string; output?: unknown }[] };
  return calls.map(({ status, code, output }) => (status === 'succeeded' ? output : `${status} ${code}`));
};

const ended = (records: readonly AuditEvent[]): boolean => records.some(({ type }) => type === 'turn.ended');

/** All records of a trace, once its turn has ended and the auditor has heard each of them live as well. */
const recorded = async (traceId: string): Promise<readonly AuditEvent[]> => {
  const records = await system.records(traceId, ended);
  await waitFor(`the live records of ${traceId}`, () => records.every(({ id }) => feed.has(id)), DEADLINE_MS);
  for (const record of records) expect(feed.get(record.id)).toEqual(record);
  return records;
};

/** What the records say of one call: type, outcome, reason, and the facts that only audit knows. */
const recordsOfCall = async (traceId: string, call: number): Promise<readonly unknown[]> =>
  (await recorded(traceId))
    .filter(({ operationId }) => operationId === `call-${call}`)
    .map(({ type, outcome, reason, metadata }) => [type, outcome, reason, metadata?.['source'], metadata?.['cause']]);

const rejections = async (traceId: string, grantId: string): Promise<readonly unknown[]> =>
  (await recorded(traceId))
    .flatMap(({ metadata }) => (metadata?.['rejectedGrants'] ?? []) as unknown as { grantId: string; reason: string }[])
    .filter((rejected) => rejected.grantId === grantId)
    .map(({ reason }) => reason);

/** Refused by the envelope: the tool was not in the catalogue of the turn, so nothing was asked of the kernel. */
const NOT_OFFERED = [['tool.invoked', 'denied', 'tool_unavailable', 'envelope', 'not_offered']];
/** Refused at discovery: the caller hears one code for every cause, audit the cause. */
const hidden = (cause: string) => [
  ['authorization.checked', 'denied', cause, undefined, undefined],
  ['tool.invoked', 'denied', 'tool_unavailable', 'kernel', cause],
];
/** Refused at the exact check. */
const refusedExactly = (code: string) => [
  ['authorization.checked', 'denied', code, undefined, undefined],
  ['tool.invoked', 'denied', code, 'kernel', undefined],
];

const inTheFuture = (ms: number): string => timestampOf(Date.now() + ms);
const passed = (instant: string): Promise<unknown> =>
  waitFor(`the instant ${instant}`, () => Date.now() > Date.parse(instant), DEADLINE_MS);

describe('what a grant allows', () => {
  it('is read and searched with the real content, and nothing beside it is found', async () => {
    const agent = await givenAgent('reader', NOTES);
    const answer = await turn(agent, 'allowed', [PLAN, { tool: 'files.search', arguments: { path: ['notes'], query: 'milk' } }]);
    expect(answers(answer)).toMatchObject([
      { content: 'Buy milk\nand bread', encoding: 'utf8', size: 18 },
      {
        matches: [
          { path: ['notes', 'later', 'trip.md'], line: 1, text: 'Milk for the trip' },
          { path: ['notes', 'plan.md'], line: 1, text: 'Buy milk' },
        ],
        truncated: false,
      },
    ]);
    expect(await recordsOfCall('allowed', 1)).toEqual([
      ['authorization.checked', 'allowed', undefined, undefined, undefined],
      ['tool.invoked', 'succeeded', undefined, 'kernel', undefined],
    ]);
  });

  it('is refused, root and siblings included, wherever the path is not at or below the granted one', async () => {
    const agent = await givenAgent('outside', NOTES);
    const calls = [DIARY, read('notes-2'), read('Notes', 'plan.md'), { tool: 'files.search', arguments: { path: [], query: 'milk' } }];
    expect(answers(await turn(agent, 'outside', calls))).toEqual(calls.map(() => 'denied no_matching_grant'));
    for (const call of [1, 2, 3, 4]) expect(await recordsOfCall('outside', call)).toEqual(refusedExactly('no_matching_grant'));
    expect(await rejections('outside', 'outside-0')).toEqual(calls.map(() => 'capability'));
  });

  it('ends at the named path itself when the scope is exact', async () => {
    const agent = await givenAgent('exact', { path: ['notes', 'plan.md'], actions: ['read'], scope: 'exact' });
    expect(answers(await turn(agent, 'exact', [PLAN, read('notes', 'later', 'trip.md'), read('notes')]))).toMatchObject([
      { content: 'Buy milk\nand bread' },
      'denied no_matching_grant',
      'denied no_matching_grant',
    ]);
  });
});

describe('what a grant does not allow', () => {
  const refused = [
    { what: 'a write with a read grant', id: 'write', held: NOTES, call: create('notes', 'new.md'), rejection: 'capability' },
    {
      what: 'another purpose',
      id: 'purpose',
      held: { ...NOTES, constraints: { purposes: ['research', 'Testing', 'testing it'] } },
      call: PLAN,
      rejection: 'purpose',
    },
    {
      what: 'an expired grant',
      id: 'expired',
      held: { ...NOTES, constraints: { expiresAt: '2026-01-01T00:00:00Z' } },
      call: PLAN,
      rejection: 'window',
    },
    {
      what: 'a grant that has not begun',
      id: 'early',
      held: { ...NOTES, constraints: { notBefore: '2199-01-01T00:00:00Z' } },
      call: PLAN,
      rejection: 'window',
    },
  ] satisfies { what: string; id: string; held: Held; call: ScriptedCall; rejection: string }[];

  it.each(refused)('is no_matching_grant where another grant shows the tool: $what', async ({ id, held, call, rejection }) => {
    const visible = elsewhere('read', 'create');
    const agent = await givenAgent(`${id}-visible`, { ...held, id: `${id}-visible-grant` }, visible);
    expect(answers(await turn(agent, `${id}-visible`, [call]))).toEqual(['denied no_matching_grant']);
    expect(await recordsOfCall(`${id}-visible`, 1)).toEqual(refusedExactly('no_matching_grant'));
    expect(await rejections(`${id}-visible`, `${id}-visible-grant`)).toEqual([rejection]);
  });

  it.each(refused)('is tool_unavailable, like a tool that does not exist, where none does: $what', async ({ id, held, call }) => {
    const agent = await givenAgent(`${id}-hidden`, held);
    expect(answers(await turn(agent, `${id}-hidden`, [call]))).toEqual(['denied tool_unavailable']);
    expect(await recordsOfCall(`${id}-hidden`, 1)).toEqual(NOT_OFFERED);
  });
});

describe('a grant that expires', () => {
  it('between two turns is used by the first and not by the second', async () => {
    const expiresAt = inTheFuture(2_500);
    const agent = await givenAgent('ends-between', { ...NOTES, id: 'ends-between-grant', constraints: { expiresAt } }, elsewhere('read'));
    expect(answers(await turn(agent, 'ends-between-1', [PLAN]))).toMatchObject([{ content: 'Buy milk\nand bread' }]);
    await passed(expiresAt);
    expect(answers(await turn(agent, 'ends-between-2', [PLAN]))).toEqual(['denied no_matching_grant']);
    expect(await rejections('ends-between-2', 'ends-between-grant')).toEqual(['window']);
  });

  /** Stops the executor between two calls of a running turn until the grant has expired; what it does next is what is asked. */
  const runAcross = async (expiresAt: string, agent: AgentAddress, traceId: string): Promise<readonly unknown[]> => {
    const [executor] = system.services['tool-executor'];
    if (executor === undefined) throw new Error('there is no executor');
    const calls = Array.from({ length: 150 }, () => PLAN);
    let paused: Promise<unknown> | undefined;
    const submitted = await (
      await system.client(ALICE)
    ).turns.submit(newTurn({ from: ALICE, agent, purpose: 'testing', traceId, calls }), {
      onEvent: ({ type }) => {
        if (type !== 'tool.completed' || paused !== undefined) return;
        executor.pause();
        paused = passed(expiresAt).finally(() => executor.resume());
      },
    });
    if (!submitted.ok) throw new Error(JSON.stringify(submitted.error));
    const answer = await submitted.value.result;
    await paused;
    if (!answer.ok) throw new Error(JSON.stringify(answer.error));
    return answers(answer.value).map((call) => (typeof call === 'string' ? call : 'succeeded'));
  };

  it.each([
    {
      what: 'refused at discovery when nothing else shows the tool',
      id: 'live-hidden',
      others: [],
      code: 'denied tool_unavailable',
      records: hidden('no_matching_grant'),
    },
    {
      what: 'refused exactly when another grant shows it',
      id: 'live-visible',
      others: [elsewhere('read')],
      code: 'denied no_matching_grant',
      records: refusedExactly('no_matching_grant'),
    },
  ])('inside a turn is $what', async ({ id, others, code, records }) => {
    const expiresAt = inTheFuture(3_000);
    const agent = await givenAgent(id, { ...NOTES, id: `${id}-grant`, constraints: { expiresAt } }, ...others);
    const outcomes = await runAcross(expiresAt, agent, id);
    const firstRefused = outcomes.indexOf(code);
    expect(firstRefused).toBeGreaterThan(0);
    expect(new Set(outcomes.slice(0, firstRefused))).toEqual(new Set(['succeeded']));
    expect(new Set(outcomes.slice(firstRefused))).toEqual(new Set([code]));
    expect(await recordsOfCall(id, firstRefused + 1)).toEqual(records);
    expect(new Set(await rejections(id, `${id}-grant`))).toEqual(new Set(['window']));
  });
});

describe('a grant of bounded uses', () => {
  it('is spent by its uses and then hides its tool', async () => {
    const agent = await givenAgent('spent', { ...NOTES, id: 'spent-grant', constraints: { maxUses: 2 } });
    expect(answers(await turn(agent, 'spent-1', [PLAN, PLAN, PLAN]))).toMatchObject([{}, {}, 'denied tool_unavailable']);
    expect(await recordsOfCall('spent-1', 3)).toEqual(hidden('grant_exhausted'));
    expect(await rejections('spent-1', 'spent-grant')).toEqual(['exhausted']);
  });

  it('stays spent in the next turn, which is not offered the tool at all', async () => {
    expect(answers(await turn({ kind: 'agent', agentId: 'spent' }, 'spent-2', [PLAN]))).toEqual(['denied tool_unavailable']);
    expect(await recordsOfCall('spent-2', 1)).toEqual(NOT_OFFERED);
  });

  it('is grant_exhausted at the exact check when another grant shows the tool', async () => {
    const agent = await givenAgent('spent-visible', { ...NOTES, constraints: { maxUses: 1 } }, elsewhere('read'));
    expect(answers(await turn(agent, 'spent-visible', [PLAN, PLAN]))).toMatchObject([{}, 'denied grant_exhausted']);
    expect(await recordsOfCall('spent-visible', 2)).toEqual(refusedExactly('grant_exhausted'));
  });

  it('loses no use to a call that is refused', async () => {
    const agent = await givenAgent('unspent', { ...NOTES, constraints: { maxUses: 1 } });
    expect(answers(await turn(agent, 'unspent', [DIARY, read('notes', '..'), PLAN]))).toMatchObject([
      'denied no_matching_grant',
      'failed invalid_tool_arguments',
      { content: 'Buy milk\nand bread' },
    ]);
  });
});

describe('a derived grant', () => {
  const agent: AgentAddress = { kind: 'agent', agentId: 'derived' };
  const ofAlice = (namespace: string, path: readonly string[], action: string, scope: 'exact' | 'descendants') => ({
    resource: { namespace, path: [...path], owner: ALICE },
    actions: [action],
    scope,
  });
  const RUN = ofAlice('sharedos.execution', addressPath(agent), 'invoke', 'exact');
  const READ = ofAlice('files', ['notes'], 'read', 'descendants');
  const SHOW = ofAlice('files', ['inbox'], 'read', 'descendants');

  const derive = async (from: Address, parent: string, id: string, to: Address, capability: typeof RUN, delegationDepth?: number) =>
    (await system.client(from)).grants.derive(parent, {
      id,
      subject: to,
      capabilities: [capability],
      ...(delegationDepth === undefined ? {} : { constraints: { delegationDepth } }),
    });
  const runForCarol = (traceId: string): Promise<TurnAnswer> => turn(agent, traceId, [PLAN, DIARY], { from: CAROL, owner: ALICE });

  beforeAll(async () => {
    for (const [name, capability] of Object.entries({ run: RUN, read: READ, show: SHOW })) {
      const { resource, actions, scope } = capability;
      await system.grant(
        `root-${name}`,
        { namespace: resource.namespace, path: resource.path, actions, scope },
        { to: BOB, constraints: { delegationDepth: 2 } },
      );
      const passedOn = [
        await derive(BOB, `root-${name}`, `bob-${name}`, CAROL, capability, 1),
        await derive(CAROL, `bob-${name}`, `carol-${name}`, agent, capability),
      ];
      for (const derived of passedOn) expect(derived.ok).toBe(true);
    }
  });

  it('lets the last of two holders run an agent on the files of the first issuer, and no further than was granted', async () => {
    expect(answers(await runForCarol('derived-works'))).toMatchObject([{ content: 'Buy milk\nand bread' }, 'denied no_matching_grant']);
  });

  it('cannot be wider than what its holder has, nor passed on by somebody who does not hold it, nor further than its depth', async () => {
    const wider = { ...READ, actions: ['*'] };
    const code = async (attempt: ReturnType<typeof derive>): Promise<unknown> => {
      const derived = await attempt;
      return derived.ok ? 'derived' : derived.error.kind === 'refused' ? derived.error.error.code : derived.error;
    };
    expect(await code(derive(BOB, 'root-read', 'too-wide', CAROL, wider))).toBe('capability_not_within_parent');
    expect(await code(derive(CAROL, 'root-read', 'not-mine', CAROL, READ))).toBe('not_the_holder');
    expect(await code(derive(CAROL, 'bob-read', 'too-deep', CAROL, READ, 1))).toBe('depth_exhausted');
  });

  it('falls with its root, for every turn that is opened after the revocation', async () => {
    expect((await (await system.client(ALICE)).grants.revoke('root-read')).ok).toBe(true);
    expect(answers(await runForCarol('derived-fallen'))).toEqual(['denied delegation_chain_invalid', 'denied no_matching_grant']);
    const denied = (await recorded('derived-fallen')).filter(
      ({ outcome, operationId }) => outcome === 'denied' && operationId === 'call-1',
    );
    expect(denied.map(({ type, reason }) => [type, reason])).toEqual([
      ['authorization.checked', 'delegation_chain_invalid'],
      ['tool.invoked', 'delegation_chain_invalid'],
    ]);
    expect(denied[0]?.metadata).toMatchObject({ delegation: { code: 'parent_inactive' } });
  });

  it('cannot be derived anew of a revoked root', async () => {
    const derived = await derive(BOB, 'root-read', 'after-the-end', CAROL, READ);
    expect(derived).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'parent_inactive' } } });
  });

  it('is not even offered the tool when every root that shows it has fallen', async () => {
    expect((await (await system.client(ALICE)).grants.revoke('root-show')).ok).toBe(true);
    expect(answers(await runForCarol('derived-hidden'))).toEqual(['denied tool_unavailable', 'denied tool_unavailable']);
    expect(await recordsOfCall('derived-hidden', 1)).toEqual(NOT_OFFERED);
  });

  it('starts no turn once the root of its invoke grant has fallen', async () => {
    expect((await (await system.client(ALICE)).grants.revoke('root-run')).ok).toBe(true);
    expect((await runForCarol('derived-not-run')).result).toMatchObject({ status: 'denied', error: { code: 'delegation_chain_invalid' } });
  });
});

describe('admission', () => {
  const deniedTurn = async (traceId: string, answer: TurnAnswer, code: string): Promise<void> => {
    expect(answer.result).toMatchObject({ status: 'denied', error: { code } });
    expect((await recorded(traceId)).map(({ type, outcome, reason }) => [type, outcome, reason])).toEqual([
      ['authority.resolved', 'succeeded', undefined],
      ['authorization.checked', 'denied', code],
      ['turn.ended', 'denied', code],
    ]);
  };

  it('denies a turn of an agent that may read everything and may not be invoked', async () => {
    const agent: AgentAddress = { kind: 'agent', agentId: 'not-invoked' };
    await system.grant('not-invoked-read', { path: [], actions: ['*'] }, { to: agent });
    await deniedTurn('not-invoked', await turn(agent, 'not-invoked', [PLAN]), 'no_matching_grant');
  });

  it('denies a turn of an agent that somebody else may invoke', async () => {
    const agent = await givenAgent('of-alice', NOTES);
    await deniedTurn('of-bob', await turn(agent, 'of-bob', [PLAN], { from: BOB }), 'no_matching_grant');
  });

  it('denies a turn over the resources of an owner who granted nothing', async () => {
    const agent = await givenAgent('of-another-owner', NOTES);
    await deniedTurn('of-another-owner', await turn(agent, 'of-another-owner', [PLAN], { owner: BOB }), 'no_matching_grant');
  });

  it('denies a turn whose one use of the agent is spent', async () => {
    const agent: AgentAddress = { kind: 'agent', agentId: 'once' };
    await system.grant('once-run', invoke(agent), { to: agent, constraints: { maxUses: 1 } });
    expect((await turn(agent, 'once-1', [])).result.status).toBe('succeeded');
    await deniedTurn('once-2', await turn(agent, 'once-2', []), 'grant_exhausted');
  });
});

describe('the catalogue of a turn', () => {
  it('refuses a guessed name, granted or not, and counts the guess as a call', async () => {
    const agent = await givenAgent('guessing', { path: [], actions: ['*'] });
    const calls = [{ tool: 'admin.grant.issue', arguments: {} }, { tool: 'files.move', arguments: { path: ['notes', 'plan.md'] } }, PLAN];
    expect(answers(await turn(agent, 'guessing', calls, { options: { maxToolCalls: 2 } }))).toEqual([
      'denied tool_unavailable',
      'denied tool_unavailable',
      'denied tool_call_limit_exceeded',
    ]);
    for (const call of [1, 2]) expect(await recordsOfCall('guessing', call)).toEqual(NOT_OFFERED);
  });

  it('holds only what the request names', async () => {
    const agent = await givenAgent('narrowed', NOTES);
    const answer = await turn(agent, 'narrowed', [{ tool: 'files.search', arguments: { path: ['notes'], query: 'milk' } }, PLAN], {
      tools: ['files.read'],
    });
    expect(answers(answer)).toMatchObject(['denied tool_unavailable', { content: 'Buy milk\nand bread' }]);
    expect(await recordsOfCall('narrowed', 1)).toEqual(NOT_OFFERED);
  });
});

describe('the budget of a turn', () => {
  let agent: AgentAddress;
  beforeAll(async () => {
    agent = await givenAgent('budget', NOTES);
  });

  it('refuses the calls past maxToolCalls, and goes on', async () => {
    expect(answers(await turn(agent, 'calls', [PLAN, PLAN, PLAN], { options: { maxToolCalls: 2 } }))).toMatchObject([
      {},
      {},
      'denied tool_call_limit_exceeded',
    ]);
    expect(await recordsOfCall('calls', 3)).toEqual([['tool.invoked', 'denied', 'tool_call_limit_exceeded', 'envelope', undefined]]);
  });

  it('refuses a declared step outside maxSteps without counting a call, and goes on', async () => {
    const ahead = { ...PLAN, step: 3 } as ScriptedCall;
    expect(answers(await turn(agent, 'step', [ahead, PLAN], { options: { maxSteps: 3, maxToolCalls: 1 } }))).toMatchObject([
      'denied step_limit_exceeded',
      {},
    ]);
    expect(await recordsOfCall('step', 1)).toEqual([['tool.invoked', 'denied', 'step_limit_exceeded', 'envelope', undefined]]);
  });

  it('fails a turn that still asks for tools after its last step', async () => {
    const { result } = await turn(agent, 'steps', [PLAN, PLAN, PLAN], { options: { maxSteps: 2 } });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_limit_exceeded' } });
    const records = await recorded('steps');
    expect(records.filter(({ type }) => type === 'tool.invoked')).toHaveLength(2);
    expect(records.at(-1)).toMatchObject({
      type: 'turn.ended',
      outcome: 'failed',
      reason: 'step_limit_exceeded',
      metadata: { endedBy: 'runtime' },
    });
  });

  it('cancels a turn at its deadline, wherever it stands', async () => {
    const calls = Array.from({ length: 999 }, () => PLAN);
    const { result } = await turn(agent, 'timeout', calls, { options: { timeoutMs: 150 } });
    expect(result).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled' } });
    const records = await recorded('timeout');
    expect(records.filter(({ type }) => type === 'turn.ended').map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ['failed', 'turn_cancelled'],
    ]);
    expect(records.filter(({ type, outcome }) => type === 'tool.invoked' && outcome === 'succeeded').length).toBeLessThan(calls.length);
  });

  it.each([{ maxSteps: 0 }, { maxSteps: 1_001 }, { maxToolCalls: 0 }, { timeoutMs: 0 }, { timeoutMs: 600_001 }])(
    'is refused, never clamped, out of range: %o',
    async (options) => {
      await expect(turn(agent, 'out-of-range', [PLAN], { options })).rejects.toThrow('invalid_request');
    },
  );
});

describe('the records', () => {
  const queried = async (who: Address, query: { authority?: Address } = {}): Promise<unknown> => {
    const answer = await (await system.client(who)).records.query(query);
    return answer.ok ? 'opened' : answer.error.kind === 'refused' ? answer.error.error.code : answer.error;
  };

  it('are open to whom a root granted them, over any other authority closed', async () => {
    expect(await queried(AUDITOR)).toBe('opened');
    expect(await queried(AUDITOR, { authority: ALICE })).toBe('opened');
    expect(await queried(AUDITOR, { authority: BOB })).toBe('not_a_root');
  });

  it('are closed to bob, and that he asked is recorded', async () => {
    expect(await queried(BOB)).toBe('no_matching_grant');
    const asked = await waitFor(
      'the record of the refusal',
      () =>
        [...feed.values()].find(
          ({ type, actor, resource }) =>
            type === 'authorization.checked' && actor.kind === 'human' && actor.userId === 'bob' && resource?.namespace === 'sharedos',
        ),
      DEADLINE_MS,
    );
    expect(asked).toMatchObject({ outcome: 'denied', reason: 'no_matching_grant', action: 'read', resource: { path: ['audit'] } });
  });

  it('are not opened by a grant over sharedos/audit that bob, no root, issued to himself or to carol', async () => {
    for (const to of [BOB, CAROL]) {
      await system.grant(`audit-of-bob-${to.userId}`, { namespace: 'sharedos', path: ['audit'], actions: ['*'] }, { from: BOB, to });
      expect(await queried(to)).toBe('no_matching_grant');
      expect(await queried(to, { authority: BOB })).toBe('not_a_root');
      expect(await queried(to, { authority: ALICE })).toBe('no_matching_grant');
    }
  });

  it('came to the auditor live without a gap', () => {
    expect(gaps).toEqual([]);
    expect(feed.size).toBeGreaterThan(100);
  });

  it('are not followed live by a principal that is not configured as an auditor, whatever it was granted', async () => {
    await system.grant('audit-carol', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: CAROL });
    expect(await queried(CAROL)).toBe('opened');
    const tailing = await (await system.client(CAROL)).audit.tail({ onRecord: () => undefined, onGap: () => undefined });
    expect(tailing).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'not_permitted' } } });
  });
});
