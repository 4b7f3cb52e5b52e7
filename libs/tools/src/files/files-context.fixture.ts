import type { AccessContext, Address } from '@sharedos/contracts';

export const AT = '2026-01-01T12:00:00.000Z';
export const maren: Address = { kind: 'human', userId: 'maren' };

export interface Asking {
  readonly owner?: Address;
  readonly namespaceId?: string;
  readonly cancel?: AbortSignal;
}

export const contextOf = ({ owner = maren, namespaceId = 'north' }: Asking = {}): AccessContext => ({
  namespaceId,
  actor: { kind: 'agent', agentId: 'scout' },
  authority: owner,
  owner,
  purpose: 'draft-brief',
  traceId: 'trace-1',
  enabledToolNamespaces: ['files', 'repo'],
  now: AT,
});
