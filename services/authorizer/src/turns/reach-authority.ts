import { type AuthorityReach, type ReachAndDiscovery, type Reply } from '@sharedos/contracts';
import { type DecideOptions, computeReach, decideWith } from '@sharedos/kernel';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { askedTurn } from './asked-turn.ts';
import { liveRevocation } from './live-revocation.ts';
import type { Ports } from '../ports.ts';
import type { TurnAuthorities } from './turn-authorities.ts';
import { worldOf } from './turn-world.ts';

/** Says where an open turn may operate and which declared tools it may discover. Spends nothing and records nothing. */
export const reachAuthority =
  (ports: Ports, turns: TurnAuthorities) =>
  async ({ token, context, ceilings }: AuthorityReach): Promise<Reply<ReachAndDiscovery>> => {
    const asked = await askedTurn(ports, turns, { token, context });
    if (!asked.ok) return asked;
    const { turn, now } = asked.value;
    const { authority, revision, held } = turn;
    if (!authority.ok) {
      const discovered = ceilings.map(() => ({ allowed: false, reasonCode: 'authority_unavailable' }));
      return { ok: true, value: { revision, reach: { status: 'unavailable', reasonCode: 'authority_unavailable' }, discovered } };
    }

    const world = { ...worldOf(ports.fold, ports.usage, turn, { seen: {} }), revocation: liveRevocation(ports) };
    const options: DecideOptions = { now, consume: false, mode: 'discover', ...held };
    return withSpan(SPAN.toolDiscover, {}, async () => {
      const discovered: ReachAndDiscovery['discovered'] = [];
      for (const ceiling of ceilings) {
        const { decision } = await decideWith(authority.value.decide(ceiling, options), world);
        discovered.push({ allowed: decision.allowed, reasonCode: decision.reasonCode });
      }
      return {
        ok: true,
        value: { revision, reach: await decideWith(computeReach(authority.value.held, { now, checks: held.checks }), world), discovered },
      };
    });
  };
