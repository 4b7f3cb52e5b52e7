import { type AccessContext, type Instant, type Result, instantOf, ok, refused } from '@sharedos/contracts';
import type { Ports } from '../ports.ts';
import type { TurnAuthorities, TurnAuthority } from './turn-authorities.ts';

/** The open turn that a question is about, and the instant at which the question is decided. */
export interface AskedTurn {
  readonly turnId: string;
  readonly turn: TurnAuthority;
  readonly now: Instant;
}

/**
 * Finds the turn that a token and a context prove. Without its token, or after its end, there is none.
 *
 * @see spec/authorization.md §5, spec/turns.md §9
 */
export const askedTurn = async (
  { store, tokens, clock, limits }: Pick<Ports, 'store' | 'tokens' | 'clock' | 'limits'>,
  turns: TurnAuthorities,
  { token, context }: { readonly token: string; readonly context: AccessContext },
): Promise<Result<AskedTurn, ReturnType<typeof refused>['error']>> => {
  const asked = Math.max(instantOf(context.now) ?? Infinity, clock());
  if (!Number.isFinite(asked)) return refused('invalid_request', 'context.now is no instant');
  const claims = tokens.verify(token, context, asked);
  if (!claims.ok) return refused('authority_unavailable', `the turn token was refused: ${claims.error}`);
  const turn = await turns.at(claims.value, context, store.storeId, limits.deadlineMs);
  if (!turn.ok) return refused('authority_unavailable', turn.error, true);
  // A turn's time only goes forward: an expiry is seen by whichever of the three clocks sees it first.
  const now = Math.max(turn.value.admittedAt, asked, clock());
  return ok({ turnId: claims.value.turnId, turn: turn.value, now });
};
