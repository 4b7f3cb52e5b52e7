import { type AuditEvent, type ExecutionResult, type LedgerRecord, canonicalJson } from '@sharedos/contracts';
import { foldExecution, usesAdmitted } from '@sharedos/kernel';
import type { Finding } from '../finding.ts';
import type { Evidence } from './evidence.ts';
import { callIdOf, lineOf } from './load.ts';
import type { PlannedTurn } from './schedule.ts';

interface Judged {
  readonly turns: readonly PlannedTurn[];
  readonly messages: readonly string[];
  readonly bounds: ReadonlyMap<string, number>;
}

export const AFTER_END = 'nothing is on record of a turn after its end but the late answer of a call that it left open';

/** Judges a run by what stands in the logs, and by nothing that any process said of itself. */
export const findingsOf = (evidence: Evidence, judged: Judged): readonly Finding[] => [
  { rule: 'every accepted turn and message has exactly one terminal record', contradictions: oneEnd(evidence, judged) },
  { rule: AFTER_END, contradictions: afterEnd(evidence) },
  { rule: 'every accepted turn has one answer, however often it was told', contradictions: oneAnswer(evidence, judged) },
  { rule: 'no effect happened twice', contradictions: repeated(evidence.effects) },
  { rule: 'every effect was admitted before', contradictions: unadmitted(evidence) },
  { rule: 'what an answer says succeeded did happen', contradictions: missing(evidence) },
  { rule: 'no bounded grant and no shared budget is over its limit', contradictions: overspent(evidence, judged) },
  { rule: 'no use is spent that nothing was admitted on', contradictions: lost(evidence) },
  { rule: 'everything admitted on a use has spent it', contradictions: unspent(evidence) },
  { rule: 'the counters agree with the ledger', contradictions: disagreeing(evidence, judged) },
  { rule: 'every refusal is on record', contradictions: unrecorded(evidence) },
  { rule: 'no audit id names two facts', contradictions: ambiguous(evidence.audit) },
  { rule: 'no message was delivered twice', contradictions: repeated(evidence.inbox) },
];

const count = (items: readonly string[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
};

const repeated = (items: readonly string[]): string[] =>
  [...count(items)].filter(([, times]) => times > 1).map(([item, times]) => `${item}: ${times} times`);

const oneEnd = ({ operations }: Evidence, { turns, messages }: Judged): string[] =>
  [...turns.map(({ executionId }) => executionId), ...messages].flatMap((id) => {
    const ends = (operations.get(id) ?? []).filter(({ type }) => type === 'ended').length;
    return ends === 1 ? [] : [`${id}: ${ends} ends`];
  });

const afterEnd = ({ operations }: Evidence): string[] =>
  [...operations].flatMap(([id, records]) => {
    const end = records.findIndex(({ type }) => type === 'ended');
    if (end === -1) return [];
    const open = new Set(foldExecution(records.slice(0, end)).openCalls);
    // `delete` says whether it was open still: a second answer of one call is none.
    const isLateAnswer = (record: LedgerRecord) => record.type === 'settled' && record.late === true && open.delete(record.callId);
    return records.slice(end + 1).flatMap((record) => (isLateAnswer(record) ? [] : [`${id}: ${record.type}`]));
  });

const oneAnswer = ({ answers }: Evidence, { turns }: Judged): string[] =>
  turns.flatMap(({ executionId }) => {
    const told = new Set((answers.get(executionId) ?? []).map((answer) => canonicalJson(answer)));
    return told.size === 1 ? [] : [`${executionId}: ${told.size} answers`];
  });

const unadmitted = ({ effects, operations }: Evidence): string[] =>
  effects.filter((line) => {
    const [executionId = '', callId = ''] = line.split('/');
    return !(operations.get(executionId) ?? []).some((record) => record.type === 'admitted' && record.callId === callId);
  });

/** The calls of a turn that came to its end by itself. */
const callsIn = (result: ExecutionResult | undefined): readonly { readonly status: string; readonly code?: string }[] =>
  result?.status === 'succeeded' ? (result.output as unknown as { calls: { status: string; code?: string }[] }).calls : [];

/** How turns ended, and how their calls did: a run in which nothing succeeds shows nothing. */
export const outcomesOf = ({ answers }: Evidence): Readonly<Record<string, number>> =>
  Object.fromEntries(
    count(
      [...answers.values()].flatMap(([result]) => {
        const code = result !== undefined && 'error' in result ? ` ${result.error?.code}` : '';
        return [`turn ${result?.status}${code}`, ...callsIn(result).map(({ status, code: why }) => `call ${why ?? status}`)];
      }),
    ),
  );

const missing = ({ answers, effects }: Evidence): string[] => {
  const happened = new Set(effects);
  return [...answers].flatMap(([executionId, [result]]) =>
    callsIn(result).flatMap(({ status }, index) => {
      const line = lineOf(executionId, callIdOf(index));
      return status === 'succeeded' && !happened.has(line) ? [line] : [];
    }),
  );
};

const admittedUses = ({ operations }: Evidence): readonly string[] =>
  [...operations].flatMap(([id, records]) => usesAdmitted(records).map(({ grantId, ordinal }) => `${grantId} ${ordinal} by ${id}`));

/** Both what was admitted and what is claimed: neither may say more than the grant does. */
const overspent = (evidence: Evidence, { bounds }: Judged): string[] => {
  const admitted = count(admittedUses(evidence).map((use) => use.slice(0, use.indexOf(' '))));
  const claimed = count(evidence.uses.map(({ grantId }) => grantId));
  const perOrdinal = count(admittedUses(evidence).map((use) => use.slice(0, use.indexOf(' by '))));
  return [
    ...[...bounds].flatMap(([grantId, max]) =>
      [admitted, claimed].flatMap((spent) => ((spent.get(grantId) ?? 0) > max ? [`${grantId}: ${spent.get(grantId)} of ${max}`] : [])),
    ),
    ...[...perOrdinal].filter(([, times]) => times > 1).map(([use, times]) => `use ${use} was admitted ${times} times`),
  ];
};

const admittedNames = (evidence: Evidence): ReadonlySet<string> =>
  new Set(admittedUses(evidence).map((use) => use.slice(0, use.indexOf(' by '))));

const lost = (evidence: Evidence): string[] => {
  const admitted = admittedNames(evidence);
  return evidence.uses.map(({ grantId, ordinal }) => `${grantId} ${ordinal}`).filter((use) => !admitted.has(use));
};

const unspent = (evidence: Evidence): string[] => {
  const claimed = new Set(evidence.uses.map(({ grantId, ordinal }) => `${grantId} ${ordinal}`));
  return [...admittedNames(evidence)].filter((use) => !claimed.has(use));
};

const disagreeing = ({ counted, uses }: Evidence, { bounds }: Judged): string[] => {
  if (counted === undefined) return ['they do not answer'];
  const claimed = count(uses.map(({ grantId }) => grantId));
  return [...bounds.keys()]
    .filter((grantId) => (counted.get(grantId) ?? 0) !== (claimed.get(grantId) ?? 0))
    .map((grantId) => `${grantId}: ${counted.get(grantId)} counted, ${claimed.get(grantId) ?? 0} claimed`);
};

const unrecorded = ({ answers, audit }: Evidence): string[] => {
  const recorded = new Set(
    audit.filter(({ type }) => type === 'tool.invoked').map(({ traceId, operationId, reason }) => `${traceId}/${operationId}: ${reason}`),
  );
  const ended = new Set(audit.filter(({ type }) => type === 'turn.ended').map(({ operationId }) => operationId));
  return [...answers].flatMap(([executionId, [result]]) => [
    ...(ended.has(executionId) ? [] : [`${executionId}: no record of its end`]),
    ...callsIn(result).flatMap(({ status, code }, index) => {
      const refusal = `${executionId}/${callIdOf(index)}: ${code}`;
      return status === 'succeeded' || recorded.has(refusal) ? [] : [refusal];
    }),
  ]);
};

/**
 * A question asked again carries the ids of its records: a second answer may be of another instant and revision, and is folded with
 * the first by its id. It must be about the same thing.
 */
const ambiguous = (audit: readonly AuditEvent[]): string[] => {
  const facts = new Map<string, Set<string>>();
  for (const { id, type, traceId, actor, operationId, resource, action, tool, messageId } of audit) {
    const about = canonicalJson([type, traceId, actor, operationId ?? '', resource ?? '', action ?? '', tool ?? '', messageId ?? '']);
    facts.set(id, (facts.get(id) ?? new Set()).add(about));
  }
  return [...facts].filter(([, said]) => said.size > 1).map(([id, said]) => `${id}: ${said.size} facts`);
};
