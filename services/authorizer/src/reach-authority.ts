import { type AuthorityReach, type ReachAndDiscovery, type Reply, instantOf } from '@sharedos/contracts';
import { computeReach, decide, decideWith } from '@sharedos/kernel';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { type Ports, refused } from './ports.ts';
import { type TurnAuthorities, worldOf } from './turn-authorities.ts';

/** Says where an open turn may operate and which declared tools it may discover. Spends nothing and records nothing. */
export const reachAuthority =
  ({ store, fold, usage, tokens, clock, limits }: Ports, turns: TurnAuthorities) =>
  async ({ token, context, ceilings }: AuthorityReach): Promise<Reply<ReachAndDiscovery>> => {
    const asked = Math.max(instantOf(context.now) ?? Infinity, clock());
    if (!Number.isFinite(asked)) return refused('invalid_request', 'context.now is no instant');
    const claims = tokens.verify(token, context, asked);
    if (!claims.ok) return refused('authority_unavailable', `the turn token was refused: ${claims.error}`);
    const turn = await turns.at(claims.value, context, store.storeId, limits.deadlineMs);
    if (!turn.ok) return refused('authority_unavailable', turn.error, true);
    const { authority, revision, admittedAt } = turn.value;
    if (!authority.ok) {
      const discovered = ceilings.map(() => ({ allowed: false, reasonCode: 'authority_unavailable' }));
      return { ok: true, value: { revision, reach: { status: 'unavailable', reasonCode: 'authority_unavailable' }, discovered } };
    }

    const now = Math.max(admittedAt, asked, clock());
    const world = worldOf(fold, usage, turn.value, undefined, { seen: {} });
    return withSpan(SPAN.toolDiscover, {}, async () => {
      const discovered: ReachAndDiscovery['discovered'] = [];
      for (const ceiling of ceilings) {
        const { decision } = await decideWith(decide(authority.value, ceiling, { now, consume: false, mode: 'discover' }), world);
        discovered.push({ allowed: decision.allowed, reasonCode: decision.reasonCode });
      }
      return { ok: true, value: { revision, reach: await decideWith(computeReach(authority.value, { now }), world), discovered } };
    });
  };
