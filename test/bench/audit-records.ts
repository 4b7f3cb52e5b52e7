import { randomUUID } from 'node:crypto';
import { type AuditEvent, hashOf, timestampOf } from '@sharedos/contracts';
import { ALICE, NAMESPACE, SCOUT } from './bench-system.ts';

/** Records of one turn: the decision and the outcome of each of its calls. */
export const RECORDS_A_TURN = 20;

const HASH = hashOf('authority');

/** The record that a real turn would make as its `number`-th; two after each other are a decision and its outcome. */
export const benchRecord = (number: number): AuditEvent => {
  const turn = Math.floor(number / RECORDS_A_TURN);
  const call = Math.floor(number / 2);
  const isDecision = number % 2 === 0;
  const isDenied = call % 10 === 9;
  return {
    version: '1',
    id: randomUUID(),
    type: isDecision ? 'authorization.checked' : 'tool.invoked',
    outcome: isDenied ? 'denied' : isDecision ? 'allowed' : 'succeeded',
    at: timestampOf(Date.now()),
    traceId: traceOf(turn),
    namespaceId: NAMESPACE,
    actor: SCOUT,
    authority: ALICE,
    owner: ALICE,
    purpose: 'measuring',
    resource: { namespace: 'files', path: ['bench', `${call % 1_000}.txt`], owner: ALICE },
    action: 'read',
    authorityHash: HASH,
    operationId: `call-${call}`,
    ...(isDenied ? { reason: 'no_matching_grant' } : { grantId: `grant-${turn % 100}` }),
    ...(isDecision ? {} : { tool: 'files.read' }),
    metadata: {
      turnId: `turn-${turn}`,
      revision: 'log@17',
      admittedAt: '2026-01-01T12:00:00.000Z',
      order: number % RECORDS_A_TURN,
      ...(isDecision ? { consumed: true, mode: 'execute' } : { source: 'kernel', catalogHash: HASH }),
    },
  };
};

export const traceOf = (turn: number): string => `trace-${turn}`;
