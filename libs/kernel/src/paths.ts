import type { Path } from '@sharedos/contracts';

/** Whether `path` is `prefix` or lies below it, segment by segment: `Work` never covers `Workbench`. */
export const isAtOrBelow = (path: Path, prefix: Path): boolean => {
  if (path.length < prefix.length) return false;
  for (let index = 0; index < prefix.length; index += 1) if (path[index] !== prefix[index]) return false;
  return true;
};

export const samePath = (a: Path, b: Path): boolean => a.length === b.length && isAtOrBelow(a, b);
