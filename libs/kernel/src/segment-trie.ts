import type { Path } from '@sharedos/contracts';
import { isAtOrBelow, samePath } from './paths.ts';

/** One capability's path, with the place of its grant in the order that grants are walked in. */
export interface Place {
  readonly path: Path;
  readonly scope: 'exact' | 'descendants';
  readonly ordinal: number;
}

/** No grant. Greater than every ordinal, so that the least of two answers is the right one. */
export const NOWHERE = Infinity;

/** Places that are compared one by one before they are set apart by their next segment. */
const FEW_MAX = 4;

/**
 * Finds which of many paths cover one, or are reached from it, by its segments. Built along the paths that are really asked
 * for: whoever holds deep paths that nobody asks for makes it hold no more than their list.
 */
export class SegmentTrie {
  readonly #root: Node;

  /** @param places In ascending order of their ordinals. */
  constructor(places: readonly Place[]) {
    this.#root = new Node(places);
  }

  /** The least ordinal of the places that cover a path, or {@link NOWHERE}. Allocates nothing once the way to it was built. */
  firstCovering(path: Path): number {
    let first = NOWHERE;
    let node = this.#root;
    for (let depth = 0; ; depth += 1) {
      const { few } = node;
      if (few.length > FEW_MAX) node.setApart(depth);
      else {
        for (let index = 0; index < few.length; index += 1) {
          const place = few[index] as Place;
          if (place.ordinal >= first) break;
          if (covers(place, path)) {
            first = place.ordinal;
            break;
          }
        }
      }
      if (node.children === undefined) return first;
      if (node.leastBelow < first) first = node.leastBelow;
      if (depth === path.length) return node.leastExact < first ? node.leastExact : first;
      const child = node.children.get(path[depth] as string);
      if (child === undefined || child.least >= first) return first;
      node = child;
    }
  }

  /** The least ordinal of the places that a ceiling at this path reaches: those below it, and those that cover it with all below. */
  firstReaching(path: Path): number {
    let first = NOWHERE;
    let node = this.#root;
    for (let depth = 0; ; depth += 1) {
      if (depth === path.length) return node.least < first ? node.least : first;
      if (node.few.length > FEW_MAX) node.setApart(depth);
      for (const place of node.few) {
        if (place.ordinal >= first) break;
        if (reaches(place, path)) {
          first = place.ordinal;
          break;
        }
      }
      if (node.leastBelow < first) first = node.leastBelow;
      const child = node.children?.get(path[depth] as string);
      if (child === undefined) return first;
      node = child;
    }
  }

  /** The ordinals of all places that cover a path; in no order, and more than once where a grant covers it more than once. */
  covering(path: Path): number[] {
    const found: number[] = [];
    let node: Node | undefined = this.#root;
    for (let depth = 0; node !== undefined; depth += 1) {
      for (const place of node.few) if (covers(place, path)) found.push(place.ordinal);
      addTo(found, node.below);
      if (depth === path.length) {
        addTo(found, node.exact);
        break;
      }
      node = node.children?.get(path[depth] as string);
    }
    return found;
  }

  /** The same for a ceiling at this path. */
  reaching(path: Path): number[] {
    const found: number[] = [];
    let node: Node | undefined = this.#root;
    for (let depth = 0; node !== undefined; depth += 1) {
      if (depth === path.length) {
        node.collect(found);
        break;
      }
      for (const place of node.few) if (reaches(place, path)) found.push(place.ordinal);
      addTo(found, node.below);
      node = node.children?.get(path[depth] as string);
    }
    return found;
  }
}

const covers = (place: Place, path: Path): boolean =>
  place.scope === 'exact' ? samePath(path, place.path) : isAtOrBelow(path, place.path);

const reaches = (place: Place, path: Path): boolean =>
  isAtOrBelow(place.path, path) || (place.scope === 'descendants' && isAtOrBelow(path, place.path));

/** One by one: a spread call has room for only so many. */
const addTo = (found: number[], ordinals: readonly number[]): void => {
  for (const ordinal of ordinals) found.push(ordinal);
};

class Node {
  /** The least ordinal at or below this node. */
  readonly least: number;
  /** Places not set apart: all of this node's until it is crowded and asked for, and none afterwards. */
  few: readonly Place[];
  /** Ordinals of the places whose path ends here: with all below it, and alone. */
  readonly below: number[] = [];
  readonly exact: number[] = [];
  leastBelow = NOWHERE;
  leastExact = NOWHERE;
  children: Map<string, Node> | undefined;

  constructor(places: readonly Place[]) {
    this.few = places;
    this.least = places[0]?.ordinal ?? NOWHERE;
  }

  /** @param depth How many segments lead to this node. */
  setApart(depth: number): void {
    const bySegment = new Map<string, Place[]>();
    for (const place of this.few) {
      const segment = place.path[depth];
      if (segment === undefined) (place.scope === 'exact' ? this.exact : this.below).push(place.ordinal);
      else {
        const beside = bySegment.get(segment);
        if (beside === undefined) bySegment.set(segment, [place]);
        else beside.push(place);
      }
    }
    this.few = [];
    this.leastBelow = this.below[0] ?? NOWHERE;
    this.leastExact = this.exact[0] ?? NOWHERE;
    this.children = new Map(Array.from(bySegment, ([segment, places]) => [segment, new Node(places)]));
  }

  collect(found: number[]): void {
    for (const { ordinal } of this.few) found.push(ordinal);
    addTo(found, this.below);
    addTo(found, this.exact);
    if (this.children !== undefined) for (const child of this.children.values()) child.collect(found);
  }
}
