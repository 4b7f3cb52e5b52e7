import type { AccessContext } from '@sharedos/contracts';
import type { TurnKernel } from './turn-kernel.ts';
import type { TurnStop } from './turn-stop.ts';

/** Holds the authority of one turn for as long as the turn lasts. */
export interface Lease {
  open(context: AccessContext): Promise<void>;
  /** Lets go, also of a lease that is still being opened when the turn has already been abandoned. */
  release(): void;
}

export const createLease = (kernel: TurnKernel, stop: TurnStop): Lease => {
  let opening: Promise<void> | undefined;
  return {
    open: (context) =>
      stop.ask(() => {
        opening = kernel.open(context, stop.signal);
        return opening;
      }),
    release: () => {
      if (opening === undefined) return;
      kernel.close();
      // Had it been still on its way, it would arrive after the release and be held by nobody. Closing twice is harmless.
      const closeAgain = (): void => kernel.close();
      opening.then(closeAgain, closeAgain).catch(() => undefined);
    },
  };
};
