/** What the metadata of a stream says about which of its events can still be read. */
export interface StreamBounds {
  /** Only so many of its last events. */
  readonly countMax?: number;
  /** Only events of this revision or a later one. */
  readonly before?: number;
}

/** The first revision of a stream of `length` events that can be read; `length` when there is none. */
export const visibleFrom = ({ countMax, before = 0 }: StreamBounds, length: number): number =>
  Math.min(length, Math.max(before, countMax === undefined ? 0 : length - countMax));
