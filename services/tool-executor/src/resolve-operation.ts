import type { Delivery } from '@sharedos/bus';
import { type OperationAt, type OperationResolve, type Reply, type ResolvedRecord, refused, timestampOf } from '@sharedos/contracts';
import { type CallFindingRefusal, adminChanged, adminRefused, foldExecution, invariant, judgeFinding } from '@sharedos/kernel';
import { mayAdminister, resourceOf } from './administer-turns.ts';
import { operationAt } from './operation-views.ts';
import type { Ports } from './ports.ts';
import { ledgerUnavailable, operationNotFound } from './show-operation.ts';

const TEXTS: Readonly<Record<CallFindingRefusal['code'] | 'version_conflict', string>> = {
  operation_not_unknown: 'of this call there is nothing to find out: it runs, it has an answer, or it never started',
  operation_resolved_otherwise: 'something else was found out of this call before, and that stands',
  operation_expired: 'the operation ended so long ago that nothing of it is known but its name',
  version_conflict: 'something was recorded of the operation since; look at it again',
};

/**
 * Records what an operator found out about a call that nobody could tell of. It is written behind the revision that it was judged
 * by, so of an operator, another one, and the late answer of the call itself, one is first and the others find it there.
 */
export const resolveOperation =
  (ports: Ports) =>
  async (asked: OperationResolve, delivery: Delivery): Promise<Reply<OperationAt>> => {
    const { namespaceId, principal, verb, traceId } = delivery;
    invariant(principal !== undefined, 'operations are resolved by principals');
    const { kind, requester, operationId, callId, outcome, output, note, expectedLedgerRevision } = asked;
    const right = await mayAdminister(ports, { ...delivery, principal }, { area: 'ledger', action: 'resolve' }, operationId);
    if (!right.ok) return right;
    const key = { namespaceId, kind, requester, id: operationId };
    const read = await ports.ledger.read(key);
    if (!read.ok) return ledgerUnavailable();
    if (read.value === undefined) return operationNotFound();
    const history = read.value;

    const { claimed } = foldExecution(history.records);
    const at = ports.clock();
    const act = {
      id: ports.ids(),
      at,
      namespaceId,
      principal,
      // Found with the records of what it is about.
      traceId: claimed?.traceId ?? traceId ?? ports.ids(),
      command: verb,
      commandId: callId,
      resource: resourceOf('ledger'),
      about: operationId,
      found: outcome,
      place: claimed === undefined ? {} : { turnId: claimed.turnId },
    };
    const refuse = async (code: keyof typeof TEXTS) => {
      await ports.audit(adminRefused(act, code));
      return refused(code, TEXTS[code]);
    };
    const judged = judgeFinding(history.records, { callId, outcome, output });
    if (!judged.ok) return refuse(judged.error.code);
    if (judged.value === 'recorded') return { ok: true, value: operationAt(kind, history) };
    if (expectedLedgerRevision !== undefined && expectedLedgerRevision !== history.revision) return refuse('version_conflict');

    const record: ResolvedRecord = {
      type: 'resolved',
      at: timestampOf(at),
      callId,
      outcome,
      by: principal,
      ...(output === undefined ? {} : { output }),
      ...(note === undefined ? {} : { note }),
      audit: [adminChanged(act)],
    };
    const written = await ports.ledger.resume(key, history).append(record);
    if (!written.ok && written.error.kind === 'fenced')
      return refused('operation_moved', 'something was recorded of the operation this moment; look at it again', true);
    if (!written.ok && written.error.kind === 'full') return refused('ledger_full', 'the ledger has no room for the finding', true);
    if (!written.ok) return ledgerUnavailable();
    const after = await ports.ledger.read(key);
    return after.ok && after.value !== undefined ? { ok: true, value: operationAt(kind, after.value) } : ledgerUnavailable();
  };
