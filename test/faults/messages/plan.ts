import { lotsFrom } from '../turns/lots.ts';

/** One message of the load. */
export interface PlannedMessage {
  readonly id: string;
  /** Its sender and its recipient, by number. */
  readonly from: number;
  readonly to: number;
}

/** What a router is told of its end when it starts: at the `nth` time that it comes to `step` it dies. */
export interface PlannedDeath {
  readonly step: string;
  readonly nth: number;
}

export interface Plan {
  readonly messages: readonly PlannedMessage[];
  readonly deaths: readonly PlannedDeath[];
  /** After so many messages each recipient that leases a route lets it lapse for a while. */
  readonly pauses: readonly number[];
}

export const SENDERS = 4;
/** Recipients with even numbers look into their inboxes; those with odd ones lease a route. */
export const RECIPIENTS = 4;

/** Every step of a send, of what leaves a parking place, and of an acknowledgement. */
export const STEPS: readonly string[] = [
  'ledger.claimed',
  'authority.decide',
  'ledger.admitted',
  'inbox',
  'parked',
  'ledger.ended',
  'ledger.delivery',
  'route',
].flatMap((arrow) => [`before ${arrow}`, `after ${arrow}`]);

/** A router that dies sooner would do nothing but start. */
const SOONEST = 20;

/** Follows from its seed alone. */
export const planOf = ({ seed, messages, deaths }: { readonly seed: number; readonly messages: number; readonly deaths: number }): Plan => {
  const lots = lotsFrom(seed);
  // Each step meets its blow before any meets a second one.
  const order = Array.from({ length: Math.ceil(deaths / STEPS.length) }, () => lots.shuffled(STEPS)).flat();
  return {
    messages: Array.from({ length: messages }, (_, index) => ({
      id: `message-${seed}-${index}`,
      from: lots.below(SENDERS),
      to: lots.below(RECIPIENTS),
    })),
    deaths: order.slice(0, deaths).map((step) => ({
      step,
      // A route changes seldom.
      nth: step.endsWith('route') ? 1 : step.endsWith('parked') ? 1 + lots.below(5) : SOONEST + lots.below(SOONEST * 2),
    })),
    pauses: Array.from({ length: 8 }, (_, index) => Math.floor(((index + 1) * messages) / 9)),
  };
};
