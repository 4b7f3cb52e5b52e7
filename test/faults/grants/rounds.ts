import { randomUUID } from 'node:crypto';
import { AuthorityClient, type Bus } from '@sharedos/bus';
import type { SharedOS } from '@sharedos/client';
import {
  type AccessContext,
  type Address,
  AuthorityOpen,
  AuthorityOpenReply,
  type Revision,
  addressKey,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { ALICE, NAMESPACE } from '../../support/test-system.ts';
import { lotsFrom } from '../turns/lots.ts';

/** A change that was acknowledged. Instants are milliseconds of this process's monotonic clock: one order for all who play. */
export interface Change {
  readonly grantId: string;
  readonly kind: 'issued' | 'revoked';
  readonly acknowledgedAt: number;
  readonly revision: Revision;
}

/** A turn that was opened, and one question that was decided in it. */
export interface Opened {
  /** The one grant that its holder has ever had a use for in this round. */
  readonly grantId: string;
  readonly holder: string;
  readonly after: Change['kind'];
  /** Before it was asked to be opened. */
  readonly askedAt: number;
  readonly revision: Revision;
  readonly status: 'allowed' | 'denied' | 'failed';
  readonly code: string;
  readonly matchedGrantId: string | undefined;
}

export interface Played {
  readonly changes: readonly Change[];
  readonly opened: readonly Opened[];
  /** Turns that were not opened, and questions that were not answered, by what was said instead. */
  readonly unavailable: ReadonlyMap<string, number>;
  /** Rounds that were played to their end. */
  readonly rounds: number;
}

/** By which way a player reaches the system. */
export interface Way {
  readonly alice: SharedOS;
  /** With the rights of the tool-executor. */
  readonly executor: Bus;
}

export interface Play {
  readonly seed: number;
  readonly rounds: number;
  /** Rounds under way at once, each of another holder. */
  readonly players: number;
  /** Players take turns in using these. */
  readonly ways: readonly Way[];
  /** How long an answer is waited for: well past the deadline of the authorizers, so that their own word arrives. */
  readonly answerMs: number;
  /** Whether what the run is about has been there; more rounds are played until it has, within reason. */
  readonly isEnough?: () => boolean;
  readonly onRound?: (played: number) => void;
}

/** What is counted when a turn was asked to be opened and nobody said anything. */
export const OPEN_UNANSWERED = 'open: no answer';

/** A round is given up, and the run with it, when the system has not come back by then. */
const PATIENCE_MS = 120_000;
const VALID_MS = 600_000;
const ROUNDS_TIMES_MAX = 20;
const OPEN = namespaceSubject('authority.open', NAMESPACE);
const SKEW_MS = 250;
const PURPOSE = 'weathering';
const RESOURCE = { namespace: 'files', path: ['cell'] };

/**
 * Rounds of: issue, acknowledged; open a turn and ask; revoke, acknowledged; open a turn and ask. Whoever answers is for the broker
 * to say. A command that was not answered is sent again as the same command; a turn that was not opened is asked for again.
 */
export const playRounds = async ({ seed, rounds, players, ways, answerMs, isEnough = () => true, onRound }: Play): Promise<Played> => {
  const lots = lotsFrom(seed);
  const changes: Change[] = [];
  const opened: Opened[] = [];
  const unavailable = new Map<string, number>();
  let begun = 0;
  let played = 0;
  const missed = (why: string): undefined => {
    unavailable.set(why, (unavailable.get(why) ?? 0) + 1);
    return undefined;
  };

  const change = async (kind: Change['kind'], grantId: string, command: () => ReturnType<SharedOS['grants']['issue']>): Promise<void> => {
    const revision = await waitFor(
      `${grantId} to be ${kind}`,
      async () => {
        const done = await command();
        if (done.ok) return done.value.revision;
        if (done.error.kind === 'unavailable') return missed(`command ${kind}`);
        const { code, retryable } = done.error.error;
        if (retryable) return missed(`command ${kind}: ${code}`);
        throw new Error(`${grantId} was not ${kind}: ${JSON.stringify(done.error)}`);
      },
      PATIENCE_MS,
    );
    changes.push({ kind, grantId, acknowledgedAt: performance.now(), revision });
  };

  const ask = async (executor: Bus, grantId: string, holder: Address, after: Change['kind']): Promise<void> => {
    const context: AccessContext = {
      namespaceId: NAMESPACE,
      actor: holder,
      authority: ALICE,
      owner: ALICE,
      purpose: PURPOSE,
      traceId: grantId,
      enabledToolNamespaces: ['files'],
      now: timestampOf(Date.now() + lots.below(2 * SKEW_MS + 1) - SKEW_MS),
    };
    const authority = new AuthorityClient(executor, answerMs);
    const answered = await waitFor(
      `an answer on ${grantId} after it was ${after}`,
      async () => {
        const askedAt = performance.now();
        const turn = { turnId: randomUUID(), context, validForMs: VALID_MS, auditId: randomUUID() };
        // Asked once and of one replica: what is counted is what that one said.
        const reply = await executor.request(OPEN, AuthorityOpen, turn, AuthorityOpenReply, { timeoutMs: answerMs });
        if (!reply.ok) return missed(OPEN_UNANSWERED);
        if (!reply.value.ok) return missed(`open: ${reply.value.error.code}`);
        const { status: loaded, token, revision } = reply.value.value;
        if (loaded !== 'resolved') throw new Error(`a turn of ${grantId} was opened without authority`);
        const question = { kind: 'authorize', request: { resource: RESOURCE, action: 'read' }, consume: false } as const;
        const verdict = await authority.decide(token, context, question, [randomUUID(), randomUUID()]);
        if (!verdict.ok) return missed(`decide: ${verdict.error.code}`);
        const { status, code, decision } = verdict.value;
        return { grantId, holder: addressKey(holder), after, askedAt, revision, status, code, matchedGrantId: decision?.matchedGrantId };
      },
      PATIENCE_MS,
    );
    opened.push(answered);
  };

  const player = async (number: number): Promise<void> => {
    const { alice, executor } = ways[number % ways.length] as Way;
    const holder = { kind: 'agent', agentId: `player-${number}` } as const;
    const capability = { resource: RESOURCE, actions: ['read'], scope: 'descendants' } as const;
    while (begun < rounds || (!isEnough() && begun < ROUNDS_TIMES_MAX * rounds)) {
      const grantId = `round-${seed}-${begun++}`;
      const terms = { id: grantId, subject: holder, capabilities: [{ ...capability, actions: [...capability.actions] }] };
      await change('issued', grantId, () => alice.grants.issue(terms, `issue-${grantId}`));
      await ask(executor, grantId, holder, 'issued');
      await change('revoked', grantId, () => alice.grants.revoke(grantId, undefined, `revoke-${grantId}`));
      await ask(executor, grantId, holder, 'revoked');
      onRound?.(++played);
    }
  };
  await Promise.all(Array.from({ length: players }, (_, number) => player(number)));
  return { changes, opened, unavailable, rounds: played };
};
