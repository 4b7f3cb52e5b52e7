import {
  type AccessContext,
  type Address,
  type AgentAddress,
  type ClaimedRecord,
  type EndedRecord,
  type ExecutionOptions,
  type ExpiredRecord,
  type Instant,
  type JsonObj,
  type LedgerRecord,
  type MessageEnvelope,
  type ResolvedRecord,
  type RuntimeManifest,
  type UseTaken,
  hashOf,
} from '@sharedos/contracts';
import { unreachable } from './decider.ts';
import { answerAsResolved } from './operation-calls.ts';

/** What the ledger says of one operation. */
export interface ExecutionState {
  readonly state: 'absent' | 'running' | 'ended' | 'expired';
  /** Absent for an operation that was cancelled before anybody took it. */
  readonly claimed?: ClaimedRecord;
  readonly opened?: boolean;
  /** Calls whose effect may have started and whose answer is not recorded: nobody can tell whether it happened. */
  readonly openCalls: readonly string[];
  readonly settledCalls: readonly string[];
  readonly ended?: EndedRecord;
  /** What an operator found out after the end, first finding first; absent where nothing was. */
  readonly resolved?: readonly ResolvedRecord[];
  /** All that is still known of it. */
  readonly expired?: ExpiredRecord;
}

/**
 * Folds the records of one operation. It refuses nothing: the first claim and the first end stand, and what was written after the
 * end changes nothing before it. What came to be known then is in {@link callsOf}.
 *
 * @see design.md §6
 */
export const foldExecution = (records: readonly LedgerRecord[]): ExecutionState => {
  let claimed: ClaimedRecord | undefined;
  let opened = false;
  let ended: EndedRecord | undefined;
  const openCalls = new Set<string>();
  const settledCalls = new Set<string>();
  const resolved: ResolvedRecord[] = [];
  for (const record of records) {
    // Whatever else is still there of it is about to go.
    if (record.type === 'expired') return { state: 'expired', openCalls: [], settledCalls: [], expired: record };
    if (ended !== undefined) {
      if (record.type === 'resolved') resolved.push(record);
      continue;
    }
    switch (record.type) {
      case 'claimed':
        claimed ??= record;
        break;
      case 'opened':
        opened = true;
        break;
      case 'admitted':
        if (!settledCalls.has(record.callId)) openCalls.add(record.callId);
        break;
      case 'settled':
        openCalls.delete(record.callId);
        settledCalls.add(record.callId);
        break;
      // Neither starts an effect nor answers one.
      case 'released':
      case 'noted':
      case 'resolved':
      case 'delivery':
        break;
      case 'ended':
        ended = record;
        break;
      default:
        unreachable(record);
    }
  }
  return {
    state: ended !== undefined ? 'ended' : records.length === 0 ? 'absent' : 'running',
    ...(claimed === undefined ? {} : { claimed }),
    ...(opened ? { opened } : {}),
    openCalls: [...openCalls],
    settledCalls: [...settledCalls],
    ...(ended === undefined ? {} : { ended }),
    ...(resolved.length === 0 ? {} : { resolved }),
  };
};

/**
 * The uses that an operation's records say something may run on, or may have run on, each once: what is decided anew takes the same.
 * Any other it was handed out is only reserved.
 */
export const usesAdmitted = (records: readonly LedgerRecord[]): readonly UseTaken[] => {
  const uses = new Map<string, UseTaken>();
  for (const record of records) {
    if (!('use' in record) && !('above' in record)) continue;
    for (const use of [...(record.use === undefined ? [] : [record.use]), ...(record.above ?? [])])
      uses.set(`${use.ordinal} ${use.grantId}`, use);
  }
  return [...uses.values()];
};

/** A request for an operation, as it arrived. `requestSequence` is its place in the queue, which a redelivery keeps; 0 for none. */
export interface RequestMark {
  readonly fingerprint: string;
  readonly requestSequence: number;
}

export type ReplayAnswer =
  /** Never claimed: claim it and run it. */
  | { readonly answer: 'run' }
  /** The very message its owner is working on: ask whether that owner is alive. */
  | { readonly answer: 'redelivery_of_running'; readonly claimed: ClaimedRecord }
  /** Sent again while it runs: acknowledge and publish nothing, the owner will answer. */
  | { readonly answer: 'duplicate_while_running'; readonly claimed: ClaimedRecord }
  /** Ended: publish the stored answer again. */
  | { readonly answer: 'stored'; readonly ended: EndedRecord }
  /** The answer was forgotten: `replay_expired`. */
  | { readonly answer: 'expired' }
  /** The id was used for something else: `replay_conflict`. */
  | { readonly answer: 'conflict' };

/** How a request is answered in view of what the ledger holds under its key. @see spec/turns.md §13 */
export const replayAnswer = (
  { state, claimed, ended, resolved, expired }: ExecutionState,
  { fingerprint, requestSequence }: RequestMark,
): ReplayAnswer => {
  if (state === 'absent') return { answer: 'run' };
  if (expired !== undefined) {
    return { answer: expired.claim !== undefined && expired.claim.fingerprint !== fingerprint ? 'conflict' : 'expired' };
  }
  const isRedelivery = requestSequence > 0 && claimed?.requestSequence === requestSequence;
  // One message says the same at every delivery, whatever the settings of the process that reads it add to its fingerprint.
  if (claimed !== undefined && !isRedelivery && claimed.fingerprint !== fingerprint) return { answer: 'conflict' };
  // Without a claim there is no fingerprint to compare: it was cancelled by id, and that is its answer whatever was meant.
  if (ended !== undefined) return { answer: 'stored', ended: resolved === undefined ? ended : answerAsResolved(ended, resolved) };
  if (claimed === undefined) return { answer: 'conflict' };
  return { answer: isRedelivery ? 'redelivery_of_running' : 'duplicate_while_running', claimed };
};

/** The semantic input of a turn. Instants that only say when it was asked are no part of it; a message's `createdAt` is. */
export interface ExecutionInput {
  readonly context: AccessContext;
  readonly agent: AgentAddress;
  readonly message: MessageEnvelope;
  readonly tools?: readonly string[] | undefined;
  readonly state?: JsonObj | undefined;
  readonly options?: ExecutionOptions | undefined;
  readonly metadata?: JsonObj | undefined;
  readonly runtime: RuntimeManifest;
  /** The envelope's default limits. */
  readonly limits: JsonObj;
}

/** Two requests with the same fingerprint ask for the same turn. @see spec/turns.md §13, "Fingerprint" */
export const executionFingerprint = ({
  context,
  agent,
  message,
  tools,
  state,
  options,
  metadata,
  runtime,
  limits,
}: ExecutionInput): string => {
  const { now: _, ...frame } = context;
  return hashOf({
    context: frame,
    agent,
    message,
    runtime,
    limits,
    ...(tools === undefined ? {} : { tools }),
    ...(state === undefined ? {} : { state }),
    ...(options === undefined ? {} : { options: stated(options) }),
    ...(metadata === undefined ? {} : { metadata }),
  });
};

/** An option left out and one set to nothing ask for the same. */
const stated = (options: ExecutionOptions): JsonObj =>
  Object.fromEntries(Object.entries(options).filter((entry): entry is [string, number] => entry[1] !== undefined));

/**
 * Names an operation. The requester is part of it, so a stranger cannot collide with another's id; hashed as a structure, so
 * no two keys can run together as text.
 */
export const operationKeyHash = (namespaceId: string, kind: 'execution' | 'message', requester: Address, id: string): string =>
  hashOf({ namespaceId, kind, requester, id });

/** How long a request may be sent again, and how far its sender's clock may be ahead of ours; both in milliseconds. */
export interface ReplayHorizon {
  readonly horizonMs: number;
  readonly skewMs: number;
}

/** A request older than the ledger's memory could run twice, and one from the future would outlive it. `NaN` is expired. */
export const requestFreshness = (requestedAt: Instant, now: Instant, { horizonMs, skewMs }: ReplayHorizon): 'ok' | 'replay_expired' =>
  requestedAt >= now - horizonMs && requestedAt <= now + skewMs ? 'ok' : 'replay_expired';
