/**
 * Room for the items of one page. An answer over the broker's limit never arrives, and what makes items large is often chosen by
 * somebody else than who reads them.
 */
export const PAGE_BYTES_MAX = 4 * 1024 * 1024;

/** As many of the first items as one answer holds, and at least one: a page ends early rather than not arriving. */
export const withinOneAnswer = <T>(items: readonly T[]): readonly T[] => {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += Buffer.byteLength(JSON.stringify(item));
    return index > 0 && bytes > PAGE_BYTES_MAX;
  });
  return end < 0 ? items : items.slice(0, end);
};
