import { type LedgerRecord, err, ok } from '@sharedos/contracts';
import { AuditOutage, TurnLost } from '@sharedos/runtime';
import { describe, expect, it } from 'vitest';
import { NOON, REVISION, alice, call, context, key, opened, scout, succeeded, toolThat, turnWorld } from './turn.fixture.ts';

const codeOf = async (result: ReturnType<Awaited<ReturnType<typeof turnWorld>>['invoke']>) => {
  const answered = await result;
  return answered.status === 'succeeded' ? 'succeeded' : `${answered.status} ${answered.error.code}`;
};
/** A promise, and its end in the hands of a test. */
const gate = () => Promise.withResolvers<void>();

describe('a turn on record', () => {
  it('tells what happened in its own order, each record inside the one that makes it true', async () => {
    const world = await turnWorld();
    await world.begin();
    await world.invoke(call('c-1'));
    await world.end();
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'settled', 'ended']);
    expect(await world.told()).toEqual([
      ['authorization.checked', 'allowed'],
      ['tool.catalog.listed', 'succeeded'],
      ['authorization.checked', 'allowed'],
      ['tool.invoked', 'succeeded'],
      ['turn.ended', 'succeeded'],
    ]);
    const audit = await world.audit();
    expect(audit.map(({ metadata }) => metadata?.['order'])).toEqual([0, 1, 2, 3, 4]);
    expect(audit.at(3)).toMatchObject({
      operationId: 'c-1',
      tool: 'files.read',
      resource: { namespace: 'files', path: ['a'] },
      action: 'read',
      grantId: 'g',
      metadata: { source: 'kernel', turnId: 'turn-1', revision: REVISION, catalogHash: audit.at(1)?.metadata?.['catalogHash'] },
    });
    expect(JSON.stringify(audit)).not.toContain('requestedAt');
  });

  it('holds neither arguments nor outputs nor thrown texts in its audit', async () => {
    const world = await turnWorld({
      tools: [
        toolThat('files.read', async (_, asked) => succeeded(asked, 'a secret output')),
        toolThat('files.throw', async () => Promise.reject(new Error('a secret text'))),
      ],
    });
    await world.begin();
    await world.invoke(call('c-1', 'files.read', { arguments: { path: ['a'], content: 'a secret argument' } }));
    await world.invoke(call('c-2', 'files.throw'));
    await world.end();
    expect(JSON.stringify(await world.audit())).not.toContain('secret');
  });
});

describe('one call, in the order of its checks', () => {
  it.each([
    ['another trace', call('c', 'files.read', { traceId: 'another' }), 'denied trace_mismatch', undefined],
    ['a name that is not registered', call('c', 'admin.grant'), 'denied tool_unavailable', 'not_registered'],
    ['a namespace that is off', call('c', 'repo.read'), 'denied tool_unavailable', 'namespace_disabled'],
  ])('%s is refused without asking anybody', async (_, asked, code, cause) => {
    const world = await turnWorld({ tools: [toolThat('files.read'), toolThat('repo.read', undefined, 'repo')] });
    await world.begin();
    const before = world.asked.length;
    expect(await codeOf(world.invoke(asked))).toBe(code);
    expect(world.asked).toHaveLength(before);
    expect((await world.audit()).at(-1)).toMatchObject({
      type: 'tool.invoked',
      outcome: 'denied',
      metadata: { source: 'kernel', ...(cause === undefined ? {} : { cause }) },
    });
  });

  it.each([
    ['arguments that do not parse', { path: 'no list' }, { failure: 'invalid_tool_arguments' }],
    ['arguments without a requirement', { path: ['unresolvable'] }, { failure: 'tool_requirement_resolution_failed' }],
    ['a requirement', { path: ['a', 'b'] }, { requirement: { resource: { namespace: 'files', path: ['a', 'b'] }, action: 'read' } }],
  ])('%s: carried to the decision, not answered before it', async (_, given, exact) => {
    const world = await turnWorld();
    await world.begin();
    world.says = () => ({ status: 'denied', code: 'tool_unavailable', cause: 'no_matching_grant' });
    expect(await codeOf(world.invoke(call('c', 'files.read', { arguments: given })))).toBe('denied tool_unavailable');
    expect(world.asked.at(-1)).toMatchObject({ kind: 'tool', exact, operationId: 'c' });
  });

  it('a refusal has one record, with its decision and what the caller heard', async () => {
    const world = await turnWorld();
    await world.begin();
    world.says = () => ({ status: 'denied', code: 'no_matching_grant' });
    expect(await world.invoke(call('c'))).toMatchObject({
      status: 'denied',
      callId: 'c',
      error: { code: 'no_matching_grant', retryable: false },
    });
    expect((await world.records()).slice(-1)).toMatchObject([
      {
        type: 'settled',
        callId: 'c',
        audit: [
          { type: 'authorization.checked', outcome: 'denied' },
          { type: 'tool.invoked', outcome: 'denied' },
        ],
      },
    ]);
    expect((await world.audit()).at(-1)?.grantId).toBeUndefined();
  });

  it('an authorizer that does not answer allows nothing', async () => {
    const world = await turnWorld();
    await world.begin();
    world.says = () => 'no answer';
    expect(await codeOf(world.invoke(call('c')))).toBe('denied authority_unavailable');
    expect((await world.audit()).at(-1)).toMatchObject({ reason: 'authority_unavailable', metadata: { failClosed: true } });
  });

  it.each([
    ['throws', async () => Promise.reject(new Error('boom')), 'failed tool_execution_failed'],
    ['answers for another call', async () => succeeded(call('other')), 'failed invalid_tool_result'],
    ['answers with what is no result', async () => ({ status: 'done' }) as never, 'failed invalid_tool_result'],
    ['answers with more than a result may be', async () => succeeded(call('c'), 'x'.repeat(4 * 1024 * 1024)), 'failed invalid_tool_result'],
  ])('a tool that %s has failed, and is settled', async (_, invoke, code) => {
    const world = await turnWorld({ tools: [toolThat('files.read', invoke)] });
    await world.begin();
    expect(await codeOf(world.invoke(call('c')))).toBe(code);
    expect((await world.records()).at(-1)).toMatchObject({ type: 'settled', callId: 'c', result: { status: 'failed' } });
    expect(world.providerErrors).toEqual(code.endsWith('execution_failed') ? ['tool_execution_failed: boom'] : []);
  });
});

describe('the answer of a call', () => {
  /** Stops at the record of the first answer. */
  const atTheAnswer = async (...invoke: Parameters<typeof toolThat>[1][]) => {
    const [reached, goOn] = [gate(), gate()];
    const world = await turnWorld({ tools: [toolThat('files.read', ...invoke)] });
    await world.begin();
    const { write } = world.log;
    world.log.write = async (record) => {
      if (Buffer.from(record.data).includes('"type":"settled"')) {
        reached.resolve();
        await goOn.promise;
      }
      return write(record);
    };
    return { world, reached: reached.promise, goOn: goOn.resolve };
  };
  const takeOver = async ({ ledger }: Awaited<ReturnType<typeof turnWorld>>): Promise<void> => {
    const history = await ledger.read(key);
    if (!history.ok || history.value === undefined) throw new Error('the turn has records');
    await ledger.resume(key, history.value).append({ type: 'noted', at: context.now, audit: [] });
  };

  it('is put on record beside the next decision, and before the next admission and the end', async () => {
    let runs = 0;
    const { world, goOn } = await atTheAnswer(async (_, asked) => ((runs += 1), succeeded(asked)));
    expect(await codeOf(world.invoke(call('c-1')))).toBe('succeeded');
    const decided = gate();
    world.says = () => (decided.resolve(), {});
    const second = world.invoke(call('c-2'));
    const ending = second.then(() => world.end());
    await decided.promise;
    expect(runs).toBe(1);
    goOn();
    await ending;
    expect((await world.records()).map((record) => ('callId' in record ? `${record.type} ${record.callId}` : record.type))).toEqual([
      'claimed',
      'opened',
      'admitted c-1',
      'settled c-1',
      'admitted c-2',
      'settled c-2',
      'ended',
    ]);
    expect((await world.audit()).map(({ metadata }) => metadata?.['order'])).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('is given to a call that is made again while it is put on record', async () => {
    const { world, goOn } = await atTheAnswer();
    const first = await world.invoke(call('c'));
    const again = world.invoke(call('c'));
    goOn();
    expect(await again).toEqual(first);
  });

  it('that could not be put on record is followed by nothing: no admission, and no end', async () => {
    let runs = 0;
    const { world, reached, goOn } = await atTheAnswer(async (_, asked) => ((runs += 1), succeeded(asked)));
    await world.invoke(call('c-1'));
    await reached;
    await takeOver(world);
    const next = world.invoke(call('c-2'));
    goOn();
    await expect(next).rejects.toThrow(TurnLost);
    await expect(world.end()).rejects.toThrow(TurnLost);
    expect(runs).toBe(1);
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'noted']);
  });

  it('is the one that was heard, whatever its tool makes of it afterwards', async () => {
    const output: Record<string, string> = { said: 'one thing' };
    const { world, reached, goOn } = await atTheAnswer(async (_, asked) => ({ ...succeeded(asked), output }));
    const heard = await world.invoke(call('c'));
    output['said'] = 'another';
    await reached;
    goOn();
    expect(heard).toMatchObject({ output: { said: 'one thing' } });
    expect((await world.records()).at(-1)).toMatchObject({ type: 'settled', result: heard });
  });

  it('is waited for where it is too large to be sure of its record', async () => {
    const { world, reached, goOn } = await atTheAnswer(async (_, asked) => succeeded(asked, 'x'.repeat(1024 * 1024)));
    let answered = false;
    const first = world.invoke(call('c')).then(() => (answered = true));
    await reached;
    // Whatever would be answered without waiting has been by now.
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    goOn();
    await first;
  });
});

describe('a call on a bounded grant', () => {
  const use = { grantId: 'g', ordinal: 1, epoch: 'e-1' };

  it('runs on a use that is claimed under its own operation', async () => {
    const world = await turnWorld();
    await world.begin();
    world.says = () => ({ use });
    expect(await codeOf(world.invoke(call('c')))).toBe('succeeded');
    const question = world.asked.at(-1);
    expect(await world.ledger.uses()).toMatchObject({
      ok: true,
      value: [{ use: { grantId: 'g', ordinal: 1, operation: question?.operation } }],
    });
    expect((await world.records()).find(({ type }) => type === 'admitted')).toMatchObject({ use });
  });

  it('does not run on a use that another operation had spent, and says that the counters are wrong', async () => {
    let ran = false;
    const world = await turnWorld({ tools: [toolThat('files.read', async (_, asked) => ((ran = true), succeeded(asked)))] });
    await world.begin();
    await world.ledger.claimUse('w1', { at: context.now, grantId: 'g', ordinal: 1, operation: 'another' });
    world.says = () => ({ use });
    expect(await codeOf(world.invoke(call('c')))).toBe('denied usage_store_unavailable');
    expect([ran, world.distrusted]).toEqual([false, ['w1 e-1']]);
    expect((await world.audit()).slice(-2)).toMatchObject([
      {
        type: 'authorization.checked',
        outcome: 'denied',
        reason: 'usage_store_unavailable',
        operationId: 'c',
        metadata: { failClosed: true, consumed: true },
      },
      { type: 'tool.invoked', outcome: 'denied', reason: 'usage_store_unavailable', metadata: { failClosed: true } },
    ]);
    expect((await world.audit()).slice(-2).map(({ grantId }) => grantId)).toEqual([undefined, undefined]);
  });

  it('does not run, and distrusts nobody, when the claim has no answer', async () => {
    const world = await turnWorld({
      through: (ledger) => ({ ...ledger, claimUse: async () => err({ kind: 'unavailable', reason: 'away' }) }),
    });
    await world.begin();
    world.says = () => ({ use });
    expect(await codeOf(world.invoke(call('c')))).toBe('denied usage_store_unavailable');
    expect(world.distrusted).toEqual([]);
  });

  it('is refused at admission in the same way', async () => {
    const world = await turnWorld();
    await world.ledger.claimUse('w1', { at: context.now, grantId: 'g', ordinal: 1, operation: 'another' });
    world.says = () => ({ use });
    await world.turn.open(context);
    expect(await world.turn.admit(scout)).toEqual({ allowed: false, reasonCode: 'usage_store_unavailable' });
    expect(world.distrusted).toEqual(['w1 e-1']);
    await world.end();
    expect(await world.told()).toEqual([
      ['authorization.checked', 'denied', 'usage_store_unavailable'],
      ['turn.ended', 'succeeded'],
    ]);
  });
});

describe('a call id', () => {
  it('names one effect: the same call again is answered from the record', async () => {
    let runs = 0;
    const world = await turnWorld({ tools: [toolThat('files.read', async (_, asked) => succeeded(asked, `run ${(runs += 1)}`))] });
    await world.begin();
    const first = await world.invoke(call('c'));
    expect(await world.invoke(call('c', 'files.read', { requestedAt: '2026-01-01T12:00:01Z' }))).toEqual(first);
    expect([runs, world.asked.filter(({ kind }) => kind === 'tool').length]).toEqual([1, 1]);
  });

  it.each([
    ['other arguments', { arguments: { path: ['b'] } }],
    ['another tool', { tool: 'files.write' }],
    ['another trace', { traceId: 'another' }],
  ])('is refused for %s: they would run on the first one’s use', async (_, more) => {
    const world = await turnWorld({ tools: [toolThat('files.read'), toolThat('files.write')] });
    await world.begin();
    await world.invoke(call('c'));
    expect(await codeOf(world.invoke(call('c', 'files.read', more)))).toBe('denied replay_conflict');
    expect((await world.records()).at(-1)).toMatchObject({ type: 'noted', audit: [{ type: 'tool.invoked', reason: 'replay_conflict' }] });
  });

  it('is pending while its call runs', async () => {
    const [entered, leave] = [gate(), gate()];
    const world = await turnWorld({
      tools: [toolThat('files.read', async (_, asked) => (entered.resolve(), await leave.promise, succeeded(asked)))],
    });
    await world.begin();
    const first = world.invoke(call('c'));
    await entered.promise;
    expect(await codeOf(world.invoke(call('c')))).toBe('failed replay_pending');
    leave.resolve();
    expect(await codeOf(first)).toBe('succeeded');
  });

  it('is not answered by a refusal of the envelope, which leaves the call under way open', async () => {
    const entered = gate();
    const world = await turnWorld({ tools: [toolThat('files.read', () => (entered.resolve(), new Promise(() => undefined)))] });
    await world.begin();
    void world.invoke(call('c')).catch(() => undefined);
    await entered.promise;
    await world.turn.recordRefusal(context, call('c'), { code: 'tool_call_limit_exceeded' });
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'noted']);
    expect((await world.audit()).at(-1)).toMatchObject({
      type: 'tool.invoked',
      outcome: 'denied',
      reason: 'tool_call_limit_exceeded',
      metadata: { source: 'envelope', catalogHash: expect.any(String) },
    });
  });
});

describe('a turn that is stopped', () => {
  it('says of every call it leaves open that it was aborted', async () => {
    const entered = gate();
    const world = await turnWorld({ tools: [toolThat('files.read', () => (entered.resolve(), new Promise(() => undefined)))] });
    await world.begin();
    void world.invoke(call('c')).catch(() => undefined);
    await entered.promise;
    await world.end('cancelled');
    expect((await world.told()).slice(-2)).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'failed', 'turn_cancelled'],
    ]);
  });

  it('enters no port when it was stopped while its admission was written', async () => {
    const stop = new AbortController();
    let ran = false;
    const world = await turnWorld({ tools: [toolThat('files.read', async (_, asked) => ((ran = true), succeeded(asked)))] });
    await world.begin();
    const { write } = world.log;
    world.log.write = async (record) => {
      const written = await write(record);
      stop.abort();
      return written;
    };
    await expect(world.invoke(call('c'), stop.signal)).rejects.toThrow();
    world.log.write = write;
    await world.end('cancelled');
    expect(ran).toBe(false);
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'ended']);
    expect((await world.told()).slice(-2)).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'failed', 'turn_cancelled'],
    ]);
  });

  it('admits nothing that is decided only after its end', async () => {
    const [deciding, decide] = [gate(), gate()];
    const world = await turnWorld();
    await world.begin();
    world.says = async () => (deciding.resolve(), await decide.promise, {});
    const late = world.invoke(call('c'));
    await deciding.promise;
    await world.end('cancelled');
    decide.resolve();
    await expect(late).rejects.toThrow(TurnLost);
    expect((await world.records()).at(-1)?.type).toBe('ended');
  });

  it('settles, behind its end, a call that outlived it, and answers nobody with it', async () => {
    const [entered, leave] = [gate(), gate()];
    const world = await turnWorld({
      tools: [toolThat('files.read', async (_, asked) => (entered.resolve(), await leave.promise, succeeded(asked)))],
    });
    await world.begin();
    const late = world.invoke(call('c'));
    await entered.promise;
    await world.end('cancelled');
    leave.resolve();
    await expect(late).rejects.toThrow(TurnLost);
    const records = await world.records();
    expect(records.map(({ type }) => type)).toEqual(['claimed', 'opened', 'admitted', 'ended', 'settled']);
    expect(records.at(-1)).toMatchObject({ callId: 'c', late: true, result: { status: 'succeeded', output: 'c' } });
    expect((await world.told()).slice(-3)).toEqual([
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'failed', 'turn_cancelled'],
      ['tool.invoked', 'succeeded'],
    ]);
  });

  it('leaves a call unknown that gives up when it is told to, or that somebody has written behind', async () => {
    const [entered, leave, stop] = [gate(), gate(), new AbortController()];
    const gone = await turnWorld({
      tools: [
        toolThat(
          'files.read',
          async (_, __, signal) => (entered.resolve(), await leave.promise, signal.throwIfAborted(), succeeded(call('c'))),
        ),
      ],
    });
    await gone.begin();
    const given = gone.invoke(call('c'), stop.signal);
    await entered.promise;
    stop.abort();
    await gone.end('cancelled');
    leave.resolve();
    await expect(given).rejects.toThrow();
    expect((await gone.records()).at(-1)?.type).toBe('ended');

    const [inside, out] = [gate(), gate()];
    const behind = await turnWorld({
      tools: [toolThat('files.read', async (_, asked) => (inside.resolve(), await out.promise, succeeded(asked)))],
    });
    await behind.begin();
    const late = behind.invoke(call('c'));
    await inside.promise;
    await behind.end('cancelled');
    const history = await behind.ledger.read(key);
    if (!history.ok || history.value === undefined) throw new Error('the turn is on record');
    const found: LedgerRecord = { type: 'resolved', at: NOON, callId: 'c', outcome: 'did_not_happen', by: alice, audit: [] };
    expect(await behind.ledger.resume(key, history.value).append(found)).toEqual(ok(undefined));
    out.resolve();
    await expect(late).rejects.toThrow(TurnLost);
    expect((await behind.records()).slice(-2).map(({ type }) => type)).toEqual(['ended', 'resolved']);
  });

  it('is lost once another process has ended it: it admits, and enters, nothing more', async () => {
    let ran = false;
    const world = await turnWorld({ tools: [toolThat('files.read', async (_, asked) => ((ran = true), succeeded(asked)))] });
    await world.begin();
    const history = await world.ledger.read(key);
    if (!history.ok || history.value === undefined) throw new Error('the turn has records');
    await world.ledger.resume(key, history.value).append({ type: 'noted', at: context.now, audit: [] });
    await expect(world.invoke(call('c'))).rejects.toThrow(TurnLost);
    expect(ran).toBe(false);
  });
});

describe('an outage of the ledger', () => {
  it('runs nothing that could not be recorded, and tells at the end of the turn what was decided', async () => {
    let ran = false;
    const world = await turnWorld({ tools: [toolThat('files.read', async (_, asked) => ((ran = true), succeeded(asked)))] });
    await world.begin();
    world.log.stall();
    await expect(world.invoke(call('c'))).rejects.toThrow(AuditOutage);
    world.log.resume();
    await world.end();
    expect(ran).toBe(false);
    expect((await world.told()).slice(2)).toEqual([
      ['authorization.checked', 'allowed'],
      ['tool.invoked', 'failed', 'operation_aborted'],
      ['turn.ended', 'succeeded'],
    ]);
    expect((await world.audit()).map(({ metadata }) => metadata?.['order'])).toEqual([0, 1, 2, 3, 4]);
  });

  it('does not undo a refusal, of the kernel or of the envelope', async () => {
    const world = await turnWorld();
    await world.begin();
    world.log.stall();
    await world.turn.recordRefusal(context, call('c'), { code: 'tool_unavailable', cause: 'not_offered' });
    world.log.resume();
    await world.end();
    expect((await world.told()).slice(2)).toEqual([
      ['tool.invoked', 'denied', 'tool_unavailable', 'not_offered'],
      ['turn.ended', 'succeeded'],
    ]);
  });

  it('holds an escalation back until it is durable', async () => {
    const world = await turnWorld();
    await world.begin();
    world.log.stall();
    await expect(world.turn.recordEscalation(context, { reason: 'I am not sure' })).rejects.toThrow(AuditOutage);
    world.log.resume();
  });
});

describe('authority that could not be had', () => {
  it('is held for the whole turn, and admission is refused on record', async () => {
    const world = await turnWorld({ opens: () => err({ code: 'authority_unavailable', reason: 'silence' }) });
    await world.turn.open(context);
    expect(await world.turn.admit(scout)).toMatchObject({ allowed: false, reasonCode: 'authority_unavailable' });
    expect(await codeOf(world.invoke(call('c')))).toBe('denied authority_unavailable');
    await expect(world.turn.list()).rejects.toThrow(AuditOutage);
    await world.end();
    expect(world.asked).toEqual([]);
    expect(await world.told()).toEqual([
      ['authority.resolved', 'failed', 'authority_unavailable'],
      ['authorization.checked', 'denied', 'authority_unavailable'],
      ['tool.invoked', 'denied', 'authority_unavailable'],
      ['turn.ended', 'succeeded'],
    ]);
    expect((await world.records()).at(-1)).not.toHaveProperty('revision');
  });

  it('is not recorded twice when the authorizer could say why', async () => {
    const { token, revision, admittedAt, validUntil } = opened;
    const world = await turnWorld({
      opens: () => ok({ status: 'unavailable', token, revision, admittedAt, validUntil, code: 'grant_limit_exceeded' }),
    });
    await world.turn.open(context);
    expect(await codeOf(world.invoke(call('c')))).toBe('denied authority_unavailable');
    expect(world.turn.revision).toBe(REVISION);
    expect(await world.told()).toEqual([['tool.invoked', 'denied', 'authority_unavailable']]);
  });

  it('is an outage of audit when its load could not be recorded', async () => {
    const world = await turnWorld({ opens: () => err({ code: 'audit_unavailable', reason: 'away' }) });
    await expect(world.turn.open(context)).rejects.toThrow(AuditOutage);
  });

  it('lists nothing when reach has no answer, and says that an outage withheld it', async () => {
    const world = await turnWorld({ reaches: () => err({ code: 'authority_unavailable', reason: 'silence' }) });
    await world.turn.open(context);
    await world.turn.admit(scout);
    expect(await world.turn.list()).toEqual({ tools: [], reach: { status: 'unavailable', reasonCode: 'authority_unavailable' } });
    expect((await world.audit()).at(-1)).toMatchObject({
      type: 'tool.catalog.listed',
      outcome: 'denied',
      metadata: { failClosed: true, withheldCount: 0 },
    });
  });
});

it('the catalogue counts what was withheld by grant and by namespace, and names none of it', async () => {
  const world = await turnWorld({
    tools: [toolThat('files.read'), toolThat('files.write'), toolThat('repo.read', undefined, 'repo')],
    reaches: () =>
      ok({
        revision: REVISION,
        reach: { status: 'computed', reach: [] },
        discovered: [
          { allowed: true, reasonCode: 'allowed' },
          { allowed: false, reasonCode: 'usage_store_unavailable' },
        ],
      }),
  });
  await world.turn.open(context);
  await world.turn.admit(scout);
  expect((await world.turn.list()).tools.map(({ name }) => name)).toEqual(['files.read']);
  const listed = (await world.audit()).at(-1);
  expect(listed).toMatchObject({ metadata: { withheldCount: 2, failClosed: true, enabledNamespaces: ['files'] } });
  expect(JSON.stringify(listed)).not.toContain('repo');
});
