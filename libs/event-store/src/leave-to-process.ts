/** What to do with a defect when nobody was named for it: the process's boundary hears of it. */
export const leaveToProcess = (defect: unknown): void =>
  queueMicrotask(() => {
    throw defect;
  });
