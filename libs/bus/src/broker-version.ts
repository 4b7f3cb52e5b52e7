/**
 * The oldest nats-server whose streams with copies may hold a log. 2.9 was seen to lose records that it had acknowledged when the
 * leader of a stream was cut off from the others again and again: then a revocation would be undone.
 *
 * @see docs/adr/0011-a-replicated-log-on-jetstream.md
 */
export const OLDEST_WITH_COPIES = '2.10.27';

/** Whether a version `major.minor.patch` comes before another. What is no version comes before all. */
export const isVersionBefore = (version: string, oldest: string): boolean => {
  const [a, b] = [partsOf(version), partsOf(oldest)];
  const at = b.findIndex((part, index) => a[index] !== part);
  return at !== -1 && (a[at] ?? 0) < (b[at] ?? 0);
};

const partsOf = (version: string): readonly number[] =>
  Array.from({ length: 3 }, (_, index) => Number.parseInt(version.split('.')[index] ?? '', 10) || 0);
