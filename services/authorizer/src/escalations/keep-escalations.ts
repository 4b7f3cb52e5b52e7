import { pause } from '@sharedos/bus';
import { type Address, type EscalationQuestion, NOTICE_SENDER, revisionOf } from '@sharedos/contracts';
import { escalationGrantId } from '@sharedos/kernel';
import type { CommandPorts } from '../ports.ts';
import { runStreamCommand } from '../changes/stream-command.ts';
import { finishApproval, undoApproval } from './finish-approval.ts';
import { type Known, grantFor, isOver, questionStream } from './question.ts';
import type { Tidings } from './tidings.ts';

const EVERY_MS = 5_000;
/** Questions looked at before others get their turn. */
const AT_ONCE = 1_000;

export interface KeptEscalations {
  /** Looks through all questions once, now. Nothing is done twice by doing it more often. */
  sweep(): Promise<void>;
  stop(): Promise<void>;
}

type KeepPorts = Pick<CommandPorts, 'store' | 'fold' | 'records' | 'clock'>;

/**
 * Brings to an end what nobody else does: approvals whose process ended between their grant and their answer, grants whose question
 * was answered otherwise, and questions whose time is over. Every replica does, and their commands are the same ones.
 *
 * @param onTrouble Told what could not be done; it is tried again.
 */
export const keepEscalations = (
  ports: KeepPorts,
  tidings: Tidings,
  { everyMs = EVERY_MS, onTrouble }: { readonly everyMs?: number; readonly onTrouble: (what: string) => void },
): KeptEscalations => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const names = new WeakMap<EscalationQuestion, string>();
  const grantIdOf = (namespaceId: string, question: EscalationQuestion): string => {
    const known = names.get(question) ?? escalationGrantId(namespaceId, question);
    names.set(question, known);
    return known;
  };

  const settle = async (namespaceId: string, state: Known): Promise<string | undefined> => {
    const { question, status } = state;
    const frame = { namespaceId };
    const at = ports.clock();
    const isIssued = ports.fold.index.has(namespaceId, grantIdOf(namespaceId, question));
    const issued = isIssued ? grantFor(ports, namespaceId, question) : undefined;
    if (status === 'open' && issued !== undefined) return troubleIn(await finishApproval(ports, tidings, frame, question, issued));
    if (isUnanswered(status) && issued !== undefined && issued.revokedAt === undefined)
      return troubleIn(await undoApproval(ports, frame, issued, at));
    return isOver(state, at) ? troubleIn(await expire(ports, tidings, namespaceId, question)) : undefined;
  };

  const sweep = async (): Promise<void> => {
    let looked = 0;
    for (const { namespaceId, state } of ports.fold.namespaces.everyEscalation()) {
      if (signal.aborted || ports.fold.trouble !== undefined) return;
      const trouble = await settle(namespaceId, state);
      if (trouble !== undefined) onTrouble(trouble);
      looked += 1;
      if (looked % AT_ONCE === 0) await pause(0, signal);
    }
  };

  const ended = (async () => {
    while (!signal.aborted) {
      await sweep();
      await pause(everyMs, signal);
    }
  })();
  return {
    sweep,
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
};

/** Nothing was granted by such an answer, so no grant of its question may stand. */
const isUnanswered = (status: Known['status']): boolean => status === 'refused' || status === 'withdrawn' || status === 'expired';

const expire = async ({ store, clock }: KeepPorts, tidings: Tidings, namespaceId: string, question: EscalationQuestion) => {
  const principal: Address = NOTICE_SENDER;
  const commandId = `expire-${escalationGrantId(namespaceId, question)}`;
  const at = clock();
  const asked = questionStream(namespaceId, question.id);
  const ran = await runStreamCommand(store, { namespaceId, verb: 'escalation.resolve' }, { commandId, principal, at }, asked, {
    type: 'ExpireEscalation',
    at,
  });
  if (ran.ok && ran.value.acts.length > 0 && ran.value.state.status !== 'absent')
    tidings.answered(namespaceId, ran.value.state, revisionOf(store.storeId, ran.value.position));
  return ran;
};

/** Why it is to be tried again. One that somebody answered meanwhile is done. */
const troubleIn = (
  done: { readonly ok: true } | { readonly ok: false; readonly error: { readonly code?: string; readonly reason?: string } },
): string | undefined =>
  done.ok || done.error.code === 'escalation_answered' ? undefined : (done.error.reason ?? done.error.code ?? 'unknown');
