import type { LedgerRecord } from '@sharedos/contracts';
import { deliveryOf } from '@sharedos/kernel';
import type { Finding } from '../finding.ts';
import type { Handed, Observed } from './load.ts';
import type { Plan } from './plan.ts';

/** What stands in the streams when all is over. */
export interface Facts {
  /** The records of each message, by its id. */
  readonly records: ReadonlyMap<string, readonly LedgerRecord[]>;
  /** Messages that still lie in an inbox or a parking place. */
  readonly left: readonly string[];
  /** Uses of the bounded grant, by the operation that claimed them, as often as they are claimed. */
  readonly uses: readonly string[];
}

export const LOST = 'no message that was accepted is lost';
export const TWICE = 'no message is handed again to a recipient that acknowledged it';

const NO_ROOM: ReadonlySet<string> = new Set(['failed parking_full', 'failed sender_parking_full']);

/** Judges a run by the streams, and by what senders were told and recipients were handed. */
export const judge = ({ messages }: Plan, { records, left, uses }: Facts, { accepted, refused, handed }: Observed): readonly Finding[] => {
  const acknowledged = new Set([...handed.values()].flat().flatMap(({ what, id }) => (what === 'acknowledged' ? [id] : [])));
  const stateOf = (id: string): string => deliveryOf(records.get(id) ?? []).status;
  return [
    {
      rule: 'every message is accepted in the end, or told that no more may wait',
      contradictions: [...refused].filter(([, why]) => !NO_ROOM.has(why)).map(([id, why]) => `${id}: ${why}`),
    },
    {
      rule: LOST,
      contradictions: [...accepted].filter((id) => stateOf(id) !== 'delivered').map((id) => `${id} is ${stateOf(id)}`),
    },
    { rule: TWICE, contradictions: [...handed].flatMap(([name, events]) => handedAgain(name, events)) },
    {
      rule: 'what a recipient acknowledged is delivered on record',
      contradictions: [...acknowledged].filter((id) => stateOf(id) !== 'delivered'),
    },
    {
      rule: 'every send has exactly one end',
      contradictions: messages.flatMap(({ id }) => {
        const ends = (records.get(id) ?? []).filter(({ type }) => type === 'ended').length;
        return ends === 1 ? [] : [`${id}: ${ends}`];
      }),
    },
    {
      rule: 'every message spends one use, however often it was decided',
      contradictions: [
        ...repeated(uses),
        ...(uses.length === accepted.size + refused.size ? [] : [`${uses.length} uses for ${accepted.size + refused.size} messages`]),
      ],
    },
    { rule: 'nothing is left in an inbox or a parking place', contradictions: left },
  ];
};

const handedAgain = (name: string, events: readonly Handed[]): string[] => {
  const done = new Set<string>();
  return events.flatMap(({ what, id }) => {
    if (what === 'handed') return done.has(id) ? [`${id} to ${name}`] : [];
    done.add(id);
    return [];
  });
};

const repeated = (items: readonly string[]): string[] => {
  const seen = new Set<string>();
  return items.filter((item) => seen.size === seen.add(item).size);
};
