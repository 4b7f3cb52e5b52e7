import type { Path } from '@sharedos/contracts';
import { isAtOrBelow } from './paths.ts';

/** One capability's path, with the place of its grant in the order that grants are walked in. */
export interface Place {
  readonly path: Path;
  readonly scope: 'exact' | 'descendants';
  readonly ordinal: number;
}

/** No grant. Greater than every ordinal, so that the least of two answers is the right one, and small enough to be kept unboxed. */
export const NOWHERE = 2 ** 30 - 1;

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
      if (node.children === undefined) {
        const { only, few } = node;
        if (only !== undefined) return node.least < first && covers(only, path, depth) ? node.least : first;
        if (few.length <= FEW_MAX) return firstOf(few, path, depth, first);
        node.setApart(depth);
      }
      if (node.leastBelow < first) first = node.leastBelow;
      if (depth === path.length) return node.leastExact < first ? node.leastExact : first;
      const child = node.children?.get(path[depth] as string);
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
      for (const place of node.few) if (covers(place, path, depth)) found.push(place.ordinal);
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

/** @param from The segments before this one are known to be the same. */
const covers = ({ path: prefix, scope }: Place, path: Path, from: number): boolean => {
  if (scope === 'exact' ? path.length !== prefix.length : path.length < prefix.length) return false;
  for (let index = from; index < prefix.length; index += 1) if (path[index] !== prefix[index]) return false;
  return true;
};

/** Of few places, the least ordinal that covers a path, or `first` where that is less. */
const firstOf = (few: readonly Place[], path: Path, from: number, first: number): number => {
  for (let index = 0; index < few.length; index += 1) {
    const place = few[index] as Place;
    if (place.ordinal >= first) return first;
    if (covers(place, path, from)) return place.ordinal;
  }
  return first;
};

const reaches = (place: Place, path: Path): boolean =>
  isAtOrBelow(place.path, path) || (place.scope === 'descendants' && isAtOrBelow(path, place.path));

/** One by one: a spread call has room for only so many. */
const addTo = (found: number[], ordinals: readonly number[]): void => {
  for (const ordinal of ordinals) found.push(ordinal);
};

const NONE: readonly never[] = Object.freeze([]);

class Node {
  /** The least ordinal at or below this node. */
  readonly least: number;
  /** Places not set apart: all of this node's until it is crowded and asked for, and none afterwards. */
  few: readonly Place[];
  /** The one place of this node, where it has no other: it is found with fewer steps from one object to the next. */
  readonly only: Place | undefined;
  /** Ordinals of the places whose path ends here: with all below it, and alone. */
  below: readonly number[] = NONE;
  exact: readonly number[] = NONE;
  leastBelow = NOWHERE;
  leastExact = NOWHERE;
  children: Map<string, Node> | undefined;

  constructor(places: readonly Place[]) {
    this.few = places;
    this.only = places.length === 1 ? places[0] : undefined;
    this.least = places[0]?.ordinal ?? NOWHERE;
  }

  /** @param depth How many segments lead to this node. */
  setApart(depth: number): void {
    const below: number[] = [];
    const exact: number[] = [];
    const bySegment = new Map<string, Place[]>();
    for (const place of this.few) {
      const segment = place.path[depth];
      if (segment === undefined) (place.scope === 'exact' ? exact : below).push(place.ordinal);
      else {
        const beside = bySegment.get(segment);
        if (beside === undefined) bySegment.set(segment, [place]);
        else beside.push(place);
      }
    }
    this.few = NONE;
    this.below = below;
    this.exact = exact;
    this.leastBelow = below[0] ?? NOWHERE;
    this.leastExact = exact[0] ?? NOWHERE;
    this.children = new Map();
    for (const [segment, places] of bySegment) this.children.set(segment, new Node(places));
  }

  collect(found: number[]): void {
    for (const { ordinal } of this.few) found.push(ordinal);
    addTo(found, this.below);
    addTo(found, this.exact);
    if (this.children !== undefined) for (const child of this.children.values()) child.collect(found);
  }
}
