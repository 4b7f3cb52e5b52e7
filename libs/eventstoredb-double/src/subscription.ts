import type { EventLog } from './event-log.ts';
import type { Faults } from './faults.ts';
import { type ReadCall, send } from './read-call.ts';
import { cut } from './rpc-error.ts';
import type { StoredEvent } from './stored-event.ts';
import { EMPTY } from './wire.ts';

export interface SubscriptionPlan {
  /** Of the first event to consider. */
  readonly index: number;
  readonly matches: (event: StoredEvent) => boolean;
  readonly message: (event: StoredEvent) => object;
  /** A checkpoint follows each so many events considered; none without a filter. */
  readonly checkpointEvery: number | undefined;
}

/** Sends what is there, says that it has caught up, and goes on with what is appended, until the caller is gone or it is cut. */
export const runSubscription = async (log: EventLog, faults: Faults, call: ReadCall, plan: SubscriptionPlan): Promise<void> => {
  let wake = Promise.withResolvers<void>();
  const look = (): void => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  let isCut = false;
  const unsubscribe = [
    log.onAppend(look),
    faults.onCut(() => {
      isCut = true;
      look();
    }),
  ];
  call.on('cancelled', look);

  let { index } = plan;
  let considered = 0;
  let hasCaughtUp = false;
  const sendNext = async (event: StoredEvent): Promise<void> => {
    if (plan.matches(event)) for (let times = faults.deliversTwice ? 2 : 1; times > 0; times -= 1) await send(call, plan.message(event));
    considered += 1;
    if (plan.checkpointEvery === undefined || considered < plan.checkpointEvery) return;
    considered = 0;
    await send(call, { checkpoint: { commitPosition: String(event.position), preparePosition: String(event.position) } });
  };

  while (!call.cancelled && !isCut) {
    const waited = wake.promise;
    await Promise.race([faults.serving.passed().then(() => faults.subscribing.passed()), waited]);
    if (faults.serving.isClosed || faults.subscribing.isClosed) continue;
    const event = log.all[index];
    if (event !== undefined) {
      index += 1;
      await sendNext(event);
      continue;
    }
    if (!hasCaughtUp) {
      hasCaughtUp = true;
      await send(call, { caughtUp: EMPTY });
      continue;
    }
    await waited;
  }
  for (const end of unsubscribe) end();
  if (isCut) call.emit('error', cut());
};
