import type { Address, Json } from '@sharedos/contracts';

/**
 * Names one operation of one actor: a structure, and never a joined text. `scope` is the execution of a tool call, its trace where
 * there is none, and empty for the others. The actor is part of it, so that nobody can use up another's ids.
 */
export interface OperationKey {
  readonly namespaceId: string;
  readonly actor: Address;
  readonly kind: 'tool' | 'resource' | 'message';
  readonly scope: string;
  readonly id: string;
}

export type OperationRecord =
  | { readonly fingerprint: string; readonly state: 'pending' | 'interrupted' | 'expired' }
  | { readonly fingerprint: string; readonly state: 'completed' | 'failed'; readonly result: Json };

export type OperationClaim =
  | { readonly claimed: true; readonly token: string }
  | { readonly claimed: false; readonly record: OperationRecord };

export type OperationEnd = { readonly state: 'completed' | 'failed'; readonly result: Json } | { readonly state: 'interrupted' };

/**
 * Remembers operations, so that one that is presented twice is done once and answered twice alike. It is durable, and every node
 * asks the same one. A claim neither times out nor changes its owner, and nothing is ever done again by it: a new attempt has a new id.
 *
 * @see spec/turns.md §13
 */
export interface OperationReplayStore {
  /** Claims a key for good, or says what is known of it. Atomic: of two that come at once, one claims. */
  claim(key: OperationKey, fingerprint: string): Promise<OperationClaim>;
  /** @returns Whether the end was written: only for the token of the claim, and once. */
  settle(key: OperationKey, token: string, end: OperationEnd): Promise<boolean>;
}
