import { join } from 'node:path';
import { type Json, PROTOCOL_VERSION } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { NO_REASON_GIVEN } from '../escalation-reason.ts';
import { firstText } from '../model/prompt.ts';
import { standardLoop } from '../standard-loop.ts';
import { succeeded } from '../testing/memory-turn-kernel.ts';
import { APPEND, READ, START, type World, aRequest, aWorld } from '../testing/turn-fixture.ts';
import { type DrivenDriverOptions, type DrivenFrame, type DrivenProtocol, FRAMES_PER_DECISION_MAX, drivenDriver } from './driven-driver.ts';
import { processChannel, transcriptChannel } from './frame-channel.ts';
import { fieldsOf } from './vendor.ts';

/** Frames as plain as can be: they say what they mean. */
const PLAIN: DrivenProtocol = {
  start: (request) => ({ type: 'start', prompt: firstText(request) }),
  answer: (id, result) => ({ type: 'tool_result', id, result: { ...result } as Json }),
  read: (frame) => (fieldsOf(frame)['type'] === 'thinking' ? undefined : (frame as unknown as DrivenFrame)),
};

const driven = (open: DrivenDriverOptions['open'], kernel: Parameters<typeof aWorld>[0]['kernel'] = {}): World => {
  let calls = 0;
  const driver = drivenDriver({ protocol: PLAIN, open, ids: () => `fresh-${(calls += 1)}` });
  const manifest = { id: 'test.driven', version: '1.0.0', protocolVersion: PROTOCOL_VERSION } as const;
  return aWorld({ runtime: standardLoop({ driver, manifest }), kernel });
};
const replay = (...frames: Json[]) => {
  const channel = transcriptChannel(frames);
  const world = driven(async () => channel);
  return { channel, world, run: () => world.run() };
};
const call = (name: string, given?: Json, id = 'mine-1'): Json => ({
  type: 'tool_call',
  id,
  name,
  ...(given === undefined ? {} : { arguments: given }),
});
const DONE: Json = { type: 'complete', output: 'done' };

describe('a harness that is driven', () => {
  it('is a program whose calls are decided like any other', async () => {
    const open: DrivenDriverOptions['open'] = () =>
      processChannel({
        command: process.execPath,
        args: [join(import.meta.dirname, 'driven.fixture.ts')],
        env: {},
        cwd: import.meta.dirname,
      });
    const world = driven(open, { tools: [{ definition: READ, answer: (made, context) => succeeded(made, context, 'the notes') }] });
    const request = aRequest({ message: { ...aRequest().message, payload: 'notes.md' } });
    expect(await world.run(request)).toMatchObject({ status: 'succeeded', output: { heard: 'the notes' } });
    expect(world.kernel.calls).toEqual([
      { id: 'fresh-1', tool: 'files.read', arguments: { path: ['notes.md'] }, traceId: 'trace-1', requestedAt: START },
    ]);
  });

  it('hears the answer to each call under its own id for it', async () => {
    const { channel, run, world } = replay(
      call('files.read', { a: 1 }, 'x'),
      { type: 'thinking' },
      call('files.append', '{"b":2}', 'y'),
      DONE,
    );
    expect(await run()).toMatchObject({ status: 'succeeded', output: 'done' });
    expect(channel.sent).toMatchObject([
      { type: 'start' },
      { id: 'x', result: { callId: 'fresh-1' } },
      { id: 'y', result: { callId: 'fresh-2' } },
    ]);
    expect(world.kernel.calls.map(({ tool, arguments: given }) => [tool, given])).toEqual([
      [READ.name, { a: 1 }],
      [APPEND.name, { b: 2 }],
    ]);
  });

  it('is refused a guess, and hears so', async () => {
    const { channel, run } = replay(call('files_purge', {}), DONE);
    await run();
    expect(channel.sent[1]).toMatchObject({ result: { status: 'denied', tool: 'files_purge', error: { code: 'tool_unavailable' } } });
  });

  it.each<[string, Json | undefined, string]>([
    ['why', { reason: 'which folder?' }, 'which folder?'],
    ['nothing that can be read', '{', NO_REASON_GIVEN],
    ['nothing', undefined, NO_REASON_GIVEN],
  ])('asks for a human, saying %s, and does nothing after it', async (_, given, reason) => {
    const { run, world } = replay(call('sharedos_escalate', given), call('files.read', {}), DONE);
    expect(await run()).toMatchObject({ status: 'escalated', escalation: { reason } });
    expect(world.kernel.calls).toEqual([]);
  });

  const THINKING: Json = { type: 'thinking' };
  it.each<[code: string, when: string, retryable: true | undefined, Json[]]>([
    ['harness_ended_without_outcome', 'it ends in the middle', undefined, [call('files.read', {})]],
    ['harness_ended_without_outcome', 'it says nothing', undefined, []],
    ['harness_frame_limit_exceeded', 'it thinks for ever', undefined, Array.from({ length: FRAMES_PER_DECISION_MAX }, () => THINKING)],
    ['harness_arguments_unparseable', 'its arguments are no JSON', undefined, [call('files.read', '{"path":')]],
    ['harness_arguments_unparseable', 'its arguments are no object', undefined, [call('files.read', ['a'])]],
    ['harness_arguments_unparseable', 'it gives none', undefined, [call('files.read')]],
    ['harness_command_rejected', 'it will not', true, [{ type: 'command_rejected' }]],
    ['harness_failed', 'it fails', true, [{ type: 'failed' }]],
    ['context_too_long', 'it fails in its own words', undefined, [{ type: 'failed', code: 'context_too_long' }]],
  ])('ends %s when %s', async (code, _, retryable, frames) => {
    const { run } = replay(...frames);
    const result = await run();
    expect(result).toMatchObject({ status: 'failed', error: { code } });
    expect((result as { error: { retryable?: boolean } }).error.retryable).toBe(retryable);
  });

  it('may think just short of for ever', async () =>
    expect(await replay(...Array.from({ length: FRAMES_PER_DECISION_MAX - 1 }, () => THINKING), DONE).run()).toMatchObject({
      status: 'succeeded',
    }));
});
