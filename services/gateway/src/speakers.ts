import { BusConnectError, type ClientError, type SharedOS, connectSharedOS } from '@sharedos/client';
import { type Address, type Result, err, ok } from '@sharedos/contracts';
import type { Identity, SignIn } from './identities.ts';
import { type Seat, openSeat } from './seat.ts';

export interface SpeakerOptions {
  readonly servers: readonly string[];
  /** Certificates to believe the broker by, in PEM. */
  readonly caFile?: string | undefined;
  readonly instance: string;
  /** How long one call may take, its turn and the queue included. */
  readonly operationTimeoutMs: number;
  readonly onDefect: (error: unknown) => void;
}

/** The connections of the identities: one for each principal and one for each agent, opened when first used. */
export interface Speakers {
  principal(identity: Identity): Promise<Result<SharedOS, ClientError>>;
  /** Refused with `permission_denied` where the identity has no agent. */
  seat(identity: Identity): Promise<Result<Seat, ClientError>>;
  /** Whether every connection that was opened is there. */
  connected(): boolean;
  close(): Promise<void>;
}

const NO_AGENT: Result<never, ClientError> = err({
  kind: 'refused',
  error: { code: 'not_permitted', message: 'no agent uses tools for this principal here', retryable: false },
});

export const openSpeakers = ({ servers, caFile, instance, operationTimeoutMs, onDefect }: SpeakerOptions): Speakers => {
  const open: SharedOS[] = [];
  const principals = new Map<string, Promise<Result<SharedOS, ClientError>>>();
  const seats = new Map<string, Promise<Result<Seat, ClientError>>>();

  const connect = async (namespaceId: string, principal: Address, signIn: SignIn): Promise<Result<SharedOS, ClientError>> => {
    try {
      const believing = caFile === undefined ? {} : { caFile };
      const sharedos = await connectSharedOS({ servers, ...believing, ...signIn, namespaceId, principal, name: `gateway/${instance}` });
      open.push(sharedos);
      return ok(sharedos);
    } catch (error) {
      if (!(error instanceof BusConnectError)) throw error;
      onDefect(error);
      return err({ kind: 'unavailable', reason: 'the broker is not reached' });
    }
  };

  /** One for each identity; what could not be had is tried again by whoever asks next. */
  const once = async <T>(
    made: Map<string, Promise<Result<T, ClientError>>>,
    key: string,
    make: () => Promise<Result<T, ClientError>>,
  ): Promise<Result<T, ClientError>> => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const making = make();
    made.set(key, making);
    const result = await making;
    if (!result.ok) made.delete(key);
    return result;
  };

  const principalOf = (identity: Identity): Promise<Result<SharedOS, ClientError>> =>
    once(principals, identity.key, () => connect(identity.namespaceId, identity.principal, identity.signIn));

  return {
    principal: principalOf,
    seat: (identity) =>
      once(seats, identity.key, async () => {
        if (identity.agent === undefined) return NO_AGENT;
        const principal = await principalOf(identity);
        if (!principal.ok) return principal;
        const { address, signIn } = identity.agent;
        const agent = await connect(identity.namespaceId, address, signIn);
        if (!agent.ok) return agent;
        const { purpose, owner } = identity;
        return openSeat({
          principal: principal.value,
          agent: agent.value,
          address,
          purpose,
          owner,
          timeoutMs: operationTimeoutMs,
          onDefect,
        });
      }),
    connected: () => open.every((sharedos) => sharedos.connected()),
    close: async () => {
      for (const seat of seats.values()) await seat.then((opened) => (opened.ok ? opened.value.close() : undefined));
      await Promise.all(open.map((sharedos) => sharedos.close()));
    },
  };
};
