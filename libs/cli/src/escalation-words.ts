import type { EscalationItem } from '@sharedos/contracts';
import { capabilitiesOf, described } from './grant-words.ts';
import { principalName } from './principal-name.ts';
import { printable, table } from './table.ts';

/** Questions, one a line. */
export const escalationsText = (items: readonly EscalationItem[]): string =>
  items.length === 0
    ? 'no questions\n'
    : table(
        ['QUESTION', 'STATUS', 'FROM', 'WANTS', 'WHY', 'ASKED'],
        items.map(({ question, status }) => [
          question.id,
          status,
          principalName(question.requester),
          wantedIn(question) ?? 'what you say',
          question.reason,
          question.requestedAt,
        ]),
      );

/** All of one question that its reviewer has to know. */
export const escalationText = ({ question, status, grant, answer }: EscalationItem): string => {
  const { id, requester, owner, reviewer, purpose, reason, call, requestedAt, expiresAt, executionId, traceId } = question;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['question', id],
    ['status', status],
    ['from', principalName(requester)],
    ['to', principalName(reviewer)],
    ['owner', principalName(owner)],
    ['why', reason],
    ['wants', wantedIn(question) ?? 'nothing that it names: you say what to give'],
    ['call', call === undefined ? undefined : `${call.tool}, this once and exactly as it is here`],
    ['arguments', call === undefined ? undefined : JSON.stringify(call.arguments)],
    ['purpose', purpose],
    ['asked', requestedAt],
    ['until', expiresAt],
    ['turn', executionId],
    ['trace', traceId],
    ['answered', answer === undefined ? undefined : answeredIn(answer)],
    ['granted', grant === undefined ? undefined : described(grant)],
  ];
  return rows.map(([name, value]) => (value === undefined ? '' : `${name.padEnd(10)}${printable(value)}\n`)).join('');
};

const answeredIn = ({ at, by, reason }: NonNullable<EscalationItem['answer']>): string =>
  [at, ...(by === undefined ? [] : [`by ${principalName(by)}`]), ...(reason === undefined ? [] : [`(${reason})`])].join(' ');

const wantedIn = ({ requestedAuthority }: EscalationItem['question']): string | undefined =>
  requestedAuthority === undefined ? undefined : capabilitiesOf(requestedAuthority);
