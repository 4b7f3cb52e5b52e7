import { z } from 'zod';
import { bounded } from './bounded.ts';
import { ReachList } from './access.ts';
import { Address } from './principals.ts';
import { Action, Id } from './scalars.ts';
import { Ts } from './time.ts';

/** The views of a card, widest first; this is their order wherever they are listed. */
export const AGENT_CARD_VIEWS = ['reach', 'identity', 'namespaces'] as const;
export const AgentCardView = z.enum(AGENT_CARD_VIEWS);
export type AgentCardView = z.infer<typeof AgentCardView>;

/** One resource namespace of a reach without its paths. `entries` counts reach entries folded, never resources. */
export const ReachSummary = z.strictObject({ namespace: Id, actions: bounded(z.array(Action), 1, 64), entries: z.int().min(1) });
export type ReachSummary = z.infer<typeof ReachSummary>;

const described = { subject: Address, namespaceId: Id, readAt: Ts };

/** The kernel's description of an agent, as one view declares it. Never stored and never shared across readers. */
export const AgentCard = z.discriminatedUnion('view', [
  z.strictObject({ view: z.literal('reach'), ...described, reach: ReachList }),
  z.strictObject({ view: z.literal('identity'), ...described }),
  z.strictObject({ view: z.literal('namespaces'), ...described, namespaces: bounded(z.array(ReachSummary), 0, 256) }),
]);
export type AgentCard = z.infer<typeof AgentCard>;
