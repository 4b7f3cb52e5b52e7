import type { Delivery } from '@sharedos/bus';
import { type AuthorityRetrace, RETRACED_GRANTS_MAX, type Reply, type Retraced, refused, timestampOf } from '@sharedos/contracts';
import type { GrantRejectionReason } from '@sharedos/kernel';
import { basisOf } from './decision-basis.ts';
import type { LogHistory } from './log-history.ts';
import { differencesOf, madeOf, recompute, turnOf, worldThen } from './recompute-decision.ts';
import { lastPosition, pastTurns, pastUpTo } from './recompute-decisions.ts';
import type { Ports } from '../ports.ts';

/** The tests of a grant, the last one first: who fails a later one came nearer. */
const NEAREST_FIRST: readonly GrantRejectionReason[] = [
  'exhausted',
  'delegation',
  'capability',
  'verifier',
  'purpose',
  'window',
  'namespace',
  'subject',
  'issuer',
];

/** Why one recorded decision came out as it did, with the grants that were looked at, from the log alone. */
export const retraceDecision =
  (ports: Pick<Ports, 'store' | 'limits' | 'policyLanguages'>, history: LogHistory) =>
  async ({ decision: event }: AuthorityRetrace, { namespaceId }: Delivery): Promise<Reply<Retraced>> => {
    if (event.type !== 'authorization.checked' || event.namespaceId !== namespaceId)
      return refused('invalid_request', 'only decisions of this namespace are computed again');
    const { storeId } = ports.store;
    const basis = basisOf(event, storeId);
    if (!basis.ok) return { ok: true, value: { answer: { status: 'no_basis', why: basis.error }, grantsResolved: 0, grants: [] } };
    const past = await pastUpTo(ports, history, lastPosition([basis], storeId));
    if (!past.ok) return past;
    const { index } = past.value;
    const { revision, admittedAt, now, mode, consume, position, context } = basis.value;
    const turn = turnOf(pastTurns(past.value, ports), basis.value);
    const decided = recompute(basis.value, turn, worldThen(index, basis.value, storeId));
    const computed = madeOf(decided, turn);
    const fields = differencesOf(event, decided, computed);
    const near = (decided.explanation?.rejections ?? []).toSorted(
      (a, b) => NEAREST_FIRST.indexOf(a.reason) - NEAREST_FIRST.indexOf(b.reason),
    );
    const named: readonly { readonly grantId: string; readonly reason?: string }[] = [
      ...(computed.grantId === undefined ? [] : [{ grantId: computed.grantId }]),
      ...near,
    ];
    const grants = named.slice(0, RETRACED_GRANTS_MAX).flatMap(({ grantId, ...why }) => {
      const found = index.grantAt(context.namespaceId, grantId, position, admittedAt);
      return found === undefined ? [] : [{ grant: found.grant, ...why }];
    });
    return {
      ok: true,
      value: {
        answer: fields.length === 0 ? { status: 'same' } : { status: 'differs', computed, fields: [...fields] },
        from: { revision, admittedAt: timestampOf(admittedAt), at: timestampOf(now), mode, consume },
        computed,
        grantsResolved: decided.explanation?.grantsResolved ?? 0,
        grants,
      },
    };
  };
