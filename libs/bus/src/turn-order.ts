/** Something that is worked off in turns with others. */
export interface Waiting {
  /** Messages that are believed to wait. */
  readonly expected: number;
  /** Questions for one that are under way. */
  readonly asking: number;
  /** When it was last asked, as a count of questions; 0 for never. */
  readonly lastAsked: number;
}

/**
 * Whose turn it is: of all with something to do, the one that was asked longest ago. However much one has waiting, another that has
 * had nothing for a while goes before its next; and one that always has something new cannot keep the rest from their turn.
 */
export const nextInTurn = <T extends Waiting>(waiting: Iterable<T>): T | undefined => {
  let next: T | undefined;
  for (const one of waiting) {
    if (one.expected > one.asking && (next === undefined || one.lastAsked < next.lastAsked)) next = one;
  }
  return next;
};
