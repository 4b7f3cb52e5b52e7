const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
] as const;

/** `3d`, `2h`, `5m`, `12s`: the largest unit of which there is one. @param ms At least 0. */
export const durationText = (ms: number): string => {
  const unit = UNITS.find(([, length]) => ms >= length);
  return unit === undefined ? `${Math.max(0, Math.floor(ms / 1_000))}s` : `${Math.floor(ms / unit[1])}${unit[0]}`;
};
