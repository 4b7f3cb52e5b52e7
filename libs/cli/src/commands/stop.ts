import type { SharedOS } from '@sharedos/client';
import { type StopDone, type StopTarget, type TurnSummary, hashOf } from '@sharedos/contracts';
import { Command } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, contextOf, invocationOf, sameCommand, valueOf } from '../command-line.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { type LastEffect, lastEffectBefore } from '../last-effect.ts';
import { parsePrincipal } from '../principal-name.ts';
import { withSpeakers } from '../speakers.ts';
import { parseStopTarget, stopName } from '../stop-name.ts';

interface Cancelled {
  /** Turns that were told to end, or never begin. */
  readonly cancelled: number;
  /** Turns that were still running when waiting for them was over. */
  readonly running: readonly TurnSummary[];
}

export const stopCommand = (terminal: Terminal): Command =>
  new Command('stop')
    .argument('<target>', 'agent:<id>, or "namespace" for all of it')
    .description('Stop an agent, or the namespace: freeze it, revoke the agent’s grants, cancel its queued and running turns.')
    .requiredOption('--reason <text>', 'why; it is recorded, and shown to whoever asks what is stopped')
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos stop agent:scout --reason "reads what it should not"
  $ sharedos stop namespace --reason "we look into it"
  $ sharedos resume agent:scout

Once it is frozen, no turn that opens may do anything. Then its grants are revoked (of an agent: those it holds; a stopped namespace
keeps them, since nothing can be done with them), its turns are cancelled, and the last effect before the stop is told: the last call
that the records say was carried out. Stopping again finishes what was left.
It takes the right to manage the policy and the turns of the namespace, and for the last effect one to read its audit.
Exit codes: 0 stopped · 1 refused, or a turn was still running in the end · 3 unavailable`,
    )
    .action(async (name: string, { reason }: { readonly reason: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const target = parseStopTarget(name);
      const say = (line: string): void => terminal.err(`${line}\n`);
      const { auditor } = await contextOf(invocation);
      const done = await withSpeakers(invocation, async (speakers) => {
        const sharedos = await speakers.as(speakers.speaker);
        const stopped = await stop(sharedos, target, reason, say);
        const turns = await cancelTurns(sharedos, target, say);
        const reader = auditor === undefined ? sharedos : await speakers.as(parsePrincipal(auditor));
        const stoppedAt = stopped.policy.stops.find((one) => stopName(one.target) === stopName(target))?.at;
        say('looking for the last effect before it …');
        return { ...stopped, ...turns, effect: await lastEffectBefore(reader, target, stoppedAt) };
      });
      invocation.show(done, stoppedText(target, done));
      if (done.running.length > 0)
        throw new CommandFailure(
          EXIT.refused,
          'turns_running',
          `still running: ${counted(done.running.length, 'turn')}; stop it again to look`,
        );
    });

export const resumeCommand = (terminal: Terminal): Command =>
  new Command('resume')
    .argument('<target>', 'agent:<id>, or "namespace" for all of it')
    .description('End a stop. What was revoked stays revoked: grants are issued anew, under new ids.')
    .option('--reason <text>', 'kept with it')
    .addHelpText('after', '\nExample:\n  $ sharedos resume agent:scout --reason "it was somebody else"')
    .action(async (name: string, { reason }: { readonly reason?: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const target = parseStopTarget(name);
      const resumed = await withSpeakers(invocation, async (speakers) => {
        const { policy } = await speakers.as(speakers.speaker);
        const { policy: before } = valueOf(await policy.get());
        // One stop is ended once, however often the command is sent.
        const commandId = `resume-${hashOf([target, before.version]).slice(0, 32)}`;
        return valueOf(await policy.resume(target, reason, commandId));
      });
      invocation.show(resumed, `resumed ${stopName(target)}\n`);
    });

/** Stops, and goes on until every grant is revoked that the stop revokes. */
const stop = async (
  { policy }: SharedOS,
  target: StopTarget,
  reason: string,
  say: (line: string) => void,
): Promise<Pick<StopDone, 'policy' | 'revision'> & { readonly revoked: number }> => {
  const { policy: before } = valueOf(await policy.get());
  const commandId = `stop-${hashOf([target, reason, before.version]).slice(0, 32)}`;
  let revoked = 0;
  for (;;) {
    const done = valueOf(await policy.stop(target, reason, commandId), {
      ...sameCommand(commandId),
      text: 'Stop it again: what was done stays done, and the rest is done then',
    });
    revoked += done.revokedNow;
    if (revoked > 0 || done.complete) say(`frozen ${stopName(target)}; ${counted(revoked, 'grant')} revoked`);
    if (done.complete) return { policy: done.policy, revision: done.revision, revoked };
  }
};

const LISTED = 500;
const ENDING_MS = 10_000;
const LOOK_AGAIN_MS = 100;

/** Cancels what waits and what runs, and waits until it has ended. */
const cancelTurns = async ({ turns }: SharedOS, target: StopTarget, say: (line: string) => void): Promise<Cancelled> => {
  const open = async (): Promise<readonly TurnSummary[]> => {
    const states = await Promise.all(
      (['queued', 'running'] as const).map((state) =>
        turns.list({ state, requester: 'everyone', limit: LISTED, ...(target.kind === 'agent' ? { agent: target.agent } : {}) }),
      ),
    );
    return states.flatMap((listed) => valueOf(listed));
  };
  const deadline = performance.now() + ENDING_MS;
  const told = new Set<string>();
  for (;;) {
    const still = await open();
    for (const { executionId, requester } of still) {
      const key = JSON.stringify([requester, executionId]);
      if (told.has(key)) continue;
      const outcome = await turns.cancel(executionId, requester);
      // One that cannot be told yet is told at the next look.
      if (outcome.ok) told.add(key);
    }
    if (still.length > 0) say(`cancelling ${counted(still.length, 'turn')} …`);
    if (still.length === 0 || performance.now() > deadline) return { cancelled: told.size, running: still };
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
};

const stoppedText = (target: StopTarget, done: Cancelled & { readonly revoked: number; readonly effect: LastEffect }): string => {
  const { revoked, cancelled, running, effect } = done;
  const lines = [
    `stopped ${stopName(target)}: ${counted(revoked, 'grant')} revoked, ${counted(cancelled, 'turn')} cancelled`,
    ...(running.length === 0 ? [] : [`still running: ${running.map(({ executionId }) => executionId).join(', ')}`]),
    effect.status === 'found'
      ? `last effect before it:\n${auditLine(effect.record)}`
      : effect.status === 'none'
        ? 'no effect before it is on record'
        : `the last effect before it is not known: ${effect.why}`,
  ];
  return `${lines.join('\n')}\n`;
};

const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;
