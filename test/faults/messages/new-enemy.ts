import type { AgentStep, RunningAgent } from '@sharedos/client';
import type { Address, AuditEvent } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { connectAs, readAudit } from '../../support/evidence.ts';
import { ALICE, BOB, NAMESPACE, PRINCIPALS, type TestSystem, startTestSystem } from '../../support/test-system.ts';
import { type Finding, allHold } from '../finding.ts';

export interface NewEnemyOptions {
  readonly rounds: number;
  /** Processes of each service. */
  readonly replicas: number;
  readonly onProgress?: ((line: string) => void) | undefined;
}

export interface NewEnemyReport {
  readonly rounds: number;
  readonly findings: readonly Finding[];
  readonly ok: boolean;
  readonly seconds: number;
}

const CLERK = { kind: 'agent', agentId: 'clerk' } as const satisfies Address;
const PLAYERS = 4;
/** In every so many rounds the grant is left alone: what would always be refused shows nothing. */
const SPARED_EVERY = 5;
const PROGRESS_ROUNDS = 50;
const RECORDED_MS = 120_000;
const exact = { scope: 'exact' } as const;

/** Clerk reads the file that a message names, and says how that went. */
const clerk = ({ turn, input, call, complete }: AgentStep) => {
  if (input.type === 'tool_result')
    return complete(input.result.status === 'succeeded' ? { found: input.result.output } : { refused: true });
  return call('files.read', { path: [(turn.message.payload as { readonly read: string }).read] });
};

/**
 * Rounds of: bob takes from clerk what he had granted it; once that is acknowledged, scout hears of it and asks clerk by a message,
 * which starts a turn of clerk’s. It must not find what it was granted, whichever replica it is opened by.
 */
export const playNewEnemy = async ({ rounds, replicas, onProgress }: NewEnemyOptions): Promise<NewEnemyReport> => {
  const startedAt = performance.now();
  const system = await startTestSystem({
    principals: [...PRINCIPALS, { namespaceId: NAMESPACE, principal: CLERK }],
    roots: { [NAMESPACE]: [ALICE, BOB] },
    replicas: { authorizer: replicas, 'tool-executor': replicas, 'messaging-router': replicas },
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_TOOL_NAMESPACES: 'files,messages,sharedos' } : {}),
    ...(onProgress === undefined ? {} : { onProgress }),
  });
  let running: RunningAgent | undefined;
  try {
    running = await prepare(system);
    const heard = new Map<number, string>();
    const next = Array.from({ length: rounds }, (_, round) => round);
    const player = async (): Promise<void> => {
      for (let round = next.shift(); round !== undefined; round = next.shift()) {
        heard.set(round, await playRound(system, round));
        if (heard.size % PROGRESS_ROUNDS === 0) onProgress?.(`${heard.size} of ${rounds} rounds`);
      }
    };
    await Promise.all(Array.from({ length: PLAYERS }, player));
    const findings = judge(heard, await recordsOf(system, rounds));
    return {
      rounds,
      findings,
      ok: allHold(findings),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    await running?.stop();
    await system.stop();
  }
};

const prepare = async (system: TestSystem): Promise<RunningAgent> => {
  await system.letAliceRunScout();
  await system.grant('scout-to-clerk', { namespace: 'sharedos.messaging', path: ['agent', 'clerk'], actions: ['send'], ...exact });
  const toClerk = { from: BOB, to: CLERK };
  await system.grant('clerk-runs', { namespace: 'sharedos.execution', path: ['agent', 'clerk'], actions: ['invoke'], ...exact }, toClerk);
  await system.grant('clerk-to-scout', { namespace: 'sharedos.messaging', path: ['agent', 'scout'], actions: ['send'], ...exact }, toClerk);
  // One file that stays readable, so that clerk is offered the tool whatever was revoked.
  await system.grant('clerk-reads', { path: ['always.md'], actions: ['read'], ...exact }, toClerk);
  const terms = { agentId: 'clerk', authority: BOB, owner: BOB, runtime: { runtime: 'remote', config: {} } };
  const registered = await (await system.client(BOB)).agents.register(terms);
  if (!registered.ok) throw new Error(JSON.stringify(registered.error));
  const running = await (await system.client(CLERK)).agent(clerk);
  if (!running.ok) throw new Error(JSON.stringify(running.error));
  return running.value;
};

const nameOf = (round: number): string => `round-${round}`;
const isSpared = (round: number): boolean => round % SPARED_EVERY === SPARED_EVERY - 1;

/** @returns What scout heard of clerk. */
const playRound = async (system: TestSystem, round: number): Promise<string> => {
  const name = nameOf(round);
  await system.files(BOB, { [`${name}.md`]: `the secret of ${name}` });
  await system.grant(name, { path: [`${name}.md`], actions: ['read'], ...exact }, { from: BOB, to: CLERK });
  if (!isSpared(round)) {
    const revoked = await (await system.client(BOB)).grants.revoke(name);
    if (!revoked.ok) throw new Error(JSON.stringify(revoked.error));
  }
  const calls = [{ tool: 'messages.request', arguments: { recipient: CLERK, payload: { read: `${name}.md` } } }];
  const { result } = await system.run({ executionId: name, traceId: name, calls });
  return JSON.stringify(result);
};

/** Clerk’s reads, from the stream of the records itself. */
const recordsOf = async (system: TestSystem, rounds: number): Promise<readonly AuditEvent[]> => {
  const projector = await connectAs(system.stack, 'audit-projector');
  try {
    const ended = ({ type, actor }: AuditEvent): boolean => type === 'turn.ended' && 'agentId' in actor && actor.agentId === 'clerk';
    const { records } = await waitFor(
      'the record of every turn of clerk’s',
      async () => {
        const found = [...(await readAudit(projector)).values()];
        return found.filter(ended).length >= rounds && { records: found };
      },
      RECORDED_MS,
    );
    return records.filter(({ type, tool }) => type === 'tool.invoked' && tool === 'files.read');
  } finally {
    await projector.close();
  }
};

const judge = (heard: ReadonlyMap<number, string>, reads: readonly AuditEvent[]): readonly Finding[] => {
  const rounds = [...heard.keys()];
  const outcomes = Map.groupBy(reads, ({ traceId }) => traceId);
  const outcomeOf = (round: number): string => (outcomes.get(nameOf(round)) ?? []).map(({ outcome }) => outcome).join(', ') || 'none';
  const secret = (round: number): boolean => heard.get(round)?.includes(`the secret of ${nameOf(round)}`) === true;
  return [
    {
      rule: 'no turn that a message starts uses a grant whose revocation was acknowledged before the message was sent',
      contradictions: rounds
        .filter((round) => !isSpared(round) && (secret(round) || outcomeOf(round) !== 'denied'))
        .map((round) => `${nameOf(round)}: ${outcomeOf(round)}${secret(round) ? ', and the file was read' : ''}`),
    },
    {
      rule: 'a grant that stands is used',
      contradictions: rounds
        .filter((round) => isSpared(round) && (!secret(round) || outcomeOf(round) !== 'succeeded'))
        .map((round) => `${nameOf(round)}: ${outcomeOf(round)}, ${heard.get(round)?.slice(0, 300)}`),
    },
  ];
};
