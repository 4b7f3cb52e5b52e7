import { type Result, SERVICE_NAMES, type ServiceName, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import { NatsError, RequestStrategy, type ServiceStats } from 'nats';
import { z } from 'zod';
import type { Bus } from './bus.ts';

/** How far a process is with what it follows. */
export const Progress = z.strictObject({
  /** Which log it follows: positions of two logs say nothing about each other. */
  log: z.string().optional(),
  position: z.number().optional(),
  /** How many positions it is behind. */
  lag: z.number().optional(),
  /** Requests in its hands. */
  running: z.number().optional(),
});
export type Progress = z.infer<typeof Progress>;

/** What a process says of itself to an operator, in the answer of the services framework. */
export const ReplicaState = z.strictObject({
  instance: z.string(),
  /** Why it may not be relied on now. */
  trouble: z.string().optional(),
  /** Its clock when it answered, in milliseconds. */
  clock: z.number(),
  ...Progress.shape,
});
export type ReplicaState = z.infer<typeof ReplicaState>;

/** A process that answered. */
export interface Replica extends Partial<Omit<ReplicaState, 'instance'>> {
  readonly service: ServiceName;
  /** Its own name; the framework's id where it did not say. */
  readonly instance: string;
  readonly version: string;
  /** In milliseconds. */
  readonly startedAt: number;
  /** How far its clock is ahead of ours, to within half of what its answer took. */
  readonly clockAheadMs?: number;
  readonly answeredInMs: number;
}

const NO_RESPONDERS = '503';
const REPLICAS_MAX = 10_000;

/**
 * Asks every process of every service what it is, as the operator. Waits the whole time: only silence tells that there is no other.
 *
 * @param now Our clock, in milliseconds.
 */
export const askReplicas = async (
  bus: Bus,
  { waitMs, now }: { readonly waitMs: number; readonly now: () => number },
): Promise<Result<readonly Replica[], Unavailable>> => {
  if (!bus.connected) return unavailable('not connected to NATS');
  const replicas: Replica[] = [];
  const asked = now();
  try {
    const answers = await bus.nats.requestMany('$SRV.STATS', '', {
      strategy: RequestStrategy.Timer,
      maxWait: waitMs,
      maxMessages: REPLICAS_MAX,
    });
    for await (const answer of answers) {
      const replica = replicaOf(answer.json<unknown>(), asked, now());
      if (replica !== undefined) replicas.push(replica);
    }
  } catch (error) {
    if (error instanceof NatsError && error.code === NO_RESPONDERS) return ok([]);
    return unavailable(error instanceof Error ? error.message : String(error));
  }
  return ok(replicas.toSorted((a, b) => compare(order(a), order(b))));
};

const order = ({ service, instance }: Replica): string => `${SERVICE_NAMES.indexOf(service)} ${instance}`;
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const replicaOf = (answer: unknown, asked: number, answered: number): Replica | undefined => {
  const stats = answer as Partial<ServiceStats>;
  const service = SERVICE_NAMES.find((name) => name === stats.name);
  if (service === undefined) return undefined;
  const state = stats.endpoints?.map(({ data }) => ReplicaState.safeParse(data)).find(({ success }) => success)?.data;
  return {
    service,
    version: String(stats.version),
    startedAt: Date.parse(String(stats.started)),
    answeredInMs: answered - asked,
    ...(state === undefined ? {} : { clockAheadMs: Math.round(state.clock - (asked + answered) / 2) }),
    ...state,
    instance: state?.instance ?? String(stats.id),
  };
};
