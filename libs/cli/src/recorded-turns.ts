import type { AuditEvent } from '@sharedos/contracts';
import { resourceName } from './resource-name.ts';
import { table } from './table.ts';

/** One step of a turn, as its audit records tell it. */
export interface RecordedStep {
  /** Milliseconds since the turn was opened. */
  readonly at: number;
  readonly what: string;
  readonly over?: string;
  readonly decision?: string;
  readonly grant?: string;
  /** What came of it; that of a call which was decided upon and of which nothing more is on record is not known to have begun. */
  readonly effect?: string;
}

export interface RecordedTurn {
  readonly turnId: string;
  readonly steps: readonly RecordedStep[];
}

const NOT_RUN = 'decided, not run';

/** The turns among some records, each step by step in the turn's own order, whatever order the records arrived in. */
export const recordedTurns = (events: readonly AuditEvent[]): readonly RecordedTurn[] => {
  const turns = new Map<string, AuditEvent[]>();
  for (const event of events) {
    const turnId = event.metadata?.['turnId'];
    if (typeof turnId === 'string') turns.set(turnId, [...(turns.get(turnId) ?? []), event]);
  }
  return [...turns].map(([turnId, own]) => ({ turnId, steps: stepsOf(own.toSorted((a, b) => orderOf(a) - orderOf(b))) }));
};

/** What the authorizer writes before the turn counts comes first. */
const orderOf = ({ metadata }: AuditEvent): number => (typeof metadata?.['order'] === 'number' ? metadata['order'] : -1);

const stepsOf = (events: readonly AuditEvent[]): readonly RecordedStep[] => {
  const begun = Math.min(...events.map(({ at }) => Date.parse(at)));
  const steps: RecordedStep[] = [];
  /** The last decision of each call of which the outcome has not come. A tool is found before the call is decided, so a call may have two. */
  const open = new Map<string, AuditEvent>();
  for (const event of events) {
    const { type, operationId = '' } = event;
    if (type === 'authorization.checked' && event.operationId !== undefined) {
      open.set(operationId, event);
      continue;
    }
    steps.push(stepOf(event, open.get(operationId), begun));
    if (type !== 'turn.ended') open.delete(operationId);
  }
  const notRun = [...open.values()].map((decision) => ({ ...stepOf(decision, decision, begun), effect: NOT_RUN }));
  return [...steps, ...notRun].map(withoutGaps).toSorted((a, b) => a.at - b.at);
};

const withoutGaps = (step: { readonly [Name in keyof RecordedStep]: RecordedStep[Name] | undefined }): RecordedStep =>
  Object.fromEntries(Object.entries(step).filter(([, value]) => value !== undefined)) as unknown as RecordedStep;

const stepOf = (event: AuditEvent, decision: AuditEvent | undefined, begun: number): RecordedStep => {
  const at = Date.parse((decision ?? event).at) - begun;
  const { resource = decision?.resource } = event;
  const over = resource === undefined ? {} : { over: resourceName(resource) };
  const outcome = withReason(event);
  switch (event.type) {
    case 'authorization.checked':
      return { at, what: decision === undefined ? 'admission' : (event.action ?? 'call'), ...over, decision: outcome, ...grantOf(event) };
    case 'tool.invoked':
    case 'message.sent':
      return {
        at,
        what: event.tool ?? event.type,
        ...over,
        ...(decision === undefined ? {} : { decision: withReason(decision) }),
        ...grantOf(decision ?? event),
        effect: outcome,
      };
    default:
      return { at, what: event.type, effect: outcome };
  }
};

const grantOf = ({ grantId }: AuditEvent): Pick<RecordedStep, 'grant'> => (grantId === undefined ? {} : { grant: grantId });
const withReason = ({ outcome, reason }: AuditEvent): string => (reason === undefined ? outcome : `${outcome} (${reason})`);

export const recordedTurnsText = (turns: readonly RecordedTurn[]): string =>
  turns
    .map(({ turnId, steps }) => {
      const rows = steps.map(({ at, what, over = '', decision = '', grant = '', effect = '' }) => [
        `+${at} ms`,
        what,
        over,
        decision,
        grant,
        effect,
      ]);
      return `turn ${turnId}\n${table(['AT', 'WHAT', 'OVER', 'DECISION', 'GRANT', 'OUTCOME'], rows)}`;
    })
    .join('\n');
