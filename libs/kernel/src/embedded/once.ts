import { type AccessContext, type Json, hashOf } from '@sharedos/contracts';
import type { z } from 'zod';
import { contractValue } from '../contract-value.ts';
import type { OperationClaim, OperationEnd, OperationKey, OperationRecord } from '../operation-replay.ts';
import type { KernelCore } from './core.ts';

export interface RepeatableOperation<R> {
  readonly key: OperationKey;
  readonly context: AccessContext;
  /** What it does to what: all of it that has a meaning. */
  readonly input: unknown;
  readonly schema: z.ZodType<R>;
  /** Refuses it, on record. */
  readonly refuse: (status: 'denied' | 'failed', code: string) => Promise<R>;
  readonly run: () => Promise<R>;
}

/**
 * Does an operation, or answers as it was answered before, where the host remembers operations; else it is simply done.
 *
 * Whatever cannot be found out is refused: an operation that may have been done is never done again to be sure.
 */
export const once = async <R extends { readonly status: string }>(core: KernelCore, operation: RepeatableOperation<R>): Promise<R> => {
  const store = core.options.operationReplay;
  const { key, context, input, refuse, run } = operation;
  if (store === undefined) return run();
  // The same at another instant is the same. A stored answer goes back only to the context that it was given to.
  const { now: _, ...stated } = context;
  const fingerprint = hashOf({ context: stated, input });
  let claim: OperationClaim;
  try {
    claim = await store.claim(key, fingerprint);
  } catch {
    return refuse('failed', 'replay_unavailable');
  }
  if (!claim.claimed) return answerOf(claim.record, fingerprint, operation);
  const { token } = claim;
  const settle = (end: OperationEnd): Promise<boolean> => store.settle(key, token, end).catch(() => false);
  let result: R;
  try {
    result = await run();
  } catch (error) {
    await settle({ state: 'interrupted' });
    throw error;
  }
  const state = result.status === 'failed' ? 'failed' : 'completed';
  return (await settle({ state, result: result as unknown as Json })) ? result : refuse('failed', 'replay_unavailable');
};

const answerOf = <R>(record: OperationRecord, fingerprint: string, { schema, refuse }: RepeatableOperation<R>): Promise<R> | R => {
  if (record.fingerprint !== fingerprint) return refuse('denied', 'replay_conflict');
  switch (record.state) {
    case 'pending':
      return refuse('failed', 'replay_pending');
    case 'interrupted':
      return refuse('failed', 'replay_interrupted');
    case 'expired':
      return refuse('failed', 'replay_expired');
    default: {
      const stored = contractValue(schema, record.result);
      return stored.ok ? stored.value : refuse('failed', 'replay_unavailable');
    }
  }
};
