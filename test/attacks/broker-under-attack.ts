import { PROVISIONER, WORK_QUEUES, type BrokerPrincipal, serviceInboxPrefix, serviceRights, subjectPatterns } from '@sharedos/bus';
import {
  type Address,
  SCHEMA_HEADER,
  SERVICE_NAMES,
  SUBJECTS,
  type ServiceName,
  type StreamName,
  type SubjectVerb,
} from '@sharedos/contracts';
import { type LocalStack, startLocalStack, waitFor } from '@sharedos/testing';
import { type Msg, type NatsConnection, connect, headers } from 'nats';

/** A raw connection, as an attacker would have it, with what the broker refused it. */
export interface RawConnection {
  readonly nats: NatsConnection;
  readonly refusals: readonly string[];
}

export interface BrokerUnderAttack {
  readonly stack: LocalStack;
  as(who: BrokerPrincipal): Promise<RawConnection>;
  asService(name: ServiceName): RawConnection;
  /** What the services were asked so far, in order. They answer each request with its subject. */
  readonly asked: readonly { readonly subject: string; readonly text: string }[];
  /** The last sequence of every stream. */
  heads(): Promise<Readonly<Record<StreamName, number>>>;
  /** Everything that reached the inside while `act` ran: growth of each stream, and requests heard by services. */
  reachedBy(
    from: RawConnection,
    act: () => unknown,
  ): Promise<{ readonly stored: Partial<Record<StreamName, number>>; readonly asked: readonly string[] }>;
  stop(): Promise<void>;
}

// Whose rights let it look at which stream.
const LOOKERS: Readonly<Record<StreamName, ServiceName>> = {
  TURNS: 'tool-executor',
  TURN_EVENTS: 'tool-executor',
  LEDGER: 'tool-executor',
  MESSAGES: 'messaging-router',
  AUDIT: 'audit-projector',
  SEALS: 'audit-projector',
  LOG: 'authorizer',
};
const QUEUED = WORK_QUEUES['tool-executor'].verbs.flatMap(subjectPatterns);
export const STREAMS = Object.keys(LOOKERS) as StreamName[];
const TIMEOUT_MS = 5_000;

/** The real broker with the generated configuration, and every service user listening to all that it may hear. */
export const startBroker = async (principals: readonly BrokerPrincipal[]): Promise<BrokerUnderAttack> => {
  const stack = await startLocalStack({ principals });
  const open: NatsConnection[] = [];
  const connection = async (credentials: { user: string; password: string; inboxPrefix: string }): Promise<RawConnection> => {
    const nats = await connect({
      servers: stack.natsUrl,
      user: credentials.user,
      pass: credentials.password,
      inboxPrefix: credentials.inboxPrefix,
      reconnect: false,
    });
    open.push(nats);
    const refusals: string[] = [];
    void (async () => {
      for await (const status of nats.status())
        if (status.type === 'error')
          refusals.push(
            status.permissionContext === undefined
              ? String(status.data)
              : `${status.permissionContext.operation} ${status.permissionContext.subject}`,
          );
    })();
    return { nats, refusals };
  };

  const asked: { subject: string; text: string }[] = [];
  const services = new Map<ServiceName, RawConnection>();
  for (const name of SERVICE_NAMES) {
    const raw = await connection(stack.credentials.service(name));
    for (const pattern of serviceRights(name).subscribe) {
      // That something was queued is heard and never answered.
      if (!pattern.startsWith('sharedos.') || QUEUED.includes(pattern)) continue;
      raw.nats.subscribe(pattern, {
        callback: (error, message) => {
          if (error !== null) return;
          asked.push({ subject: message.subject, text: message.string() });
          const named = headers();
          named.set(SCHEMA_HEADER, `${String(message.subject.split('.').slice(3, 5).join('.'))}.reply/1`);
          message.respond(message.subject, { headers: named });
        },
      });
    }
    await raw.nats.flush();
    services.set(name, raw);
  }
  const asService = (name: ServiceName): RawConnection => services.get(name) as RawConnection;

  const heads = async (): Promise<Record<StreamName, number>> => {
    const found = await Promise.all(
      STREAMS.map(async (stream) => {
        const info = (await asService(LOOKERS[stream]).nats.request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: TIMEOUT_MS })).json<{
          state: { last_seq: number };
        }>();
        return [stream, info.state.last_seq] as const;
      }),
    );
    return Object.fromEntries(found) as Record<StreamName, number>;
  };

  return {
    stack,
    as: (who) => connection(stack.credentials.principal(who.namespaceId, who.principal)),
    asService,
    asked,
    heads,
    reachedBy: async (from, act) => {
      const before = await heads();
      const heard = asked.length;
      await act();
      // The broker handles one connection's messages in order, so after this it has handled the attack; what the attack caused
      // inside is ahead of the services' own round trips.
      await from.nats.flush();
      await Promise.all([...services.values()].map(({ nats }) => nats.flush()));
      await from.nats.flush();
      const after = await heads();
      return {
        stored: Object.fromEntries(
          STREAMS.filter((stream) => after[stream] !== before[stream]).map((stream) => [stream, after[stream] - before[stream]]),
        ),
        asked: asked.slice(heard).map(({ subject }) => subject),
      };
    },
    stop: async () => {
      await Promise.all(open.map((nats) => nats.close()));
      await stack.stop();
    },
  };
};

/** Publishes, and waits for the broker's refusal. */
export const refusedPublish = async (
  from: RawConnection,
  subject: string,
  body: string | Uint8Array = '{}',
  options: { reply?: string } = {},
): Promise<void> => {
  const before = from.refusals.length;
  from.nats.publish(subject, body, options);
  await from.nats.flush();
  await waitFor(
    `the refusal of a publish on ${subject}`,
    () => from.refusals.slice(before).some((refusal) => refusal.startsWith('publish ') || /Permissions/i.test(refusal)),
    TIMEOUT_MS,
  );
};

/** Subscribes, and waits for the broker's refusal. */
export const refusedSubscribe = async (from: RawConnection, subject: string, queue?: string): Promise<void> => {
  const before = from.refusals.length;
  // Its own callback hears of the refusal too; the connection's status is what is asked.
  const subscription = from.nats.subscribe(subject, { callback: () => undefined, ...(queue === undefined ? {} : { queue }) });
  await from.nats.flush();
  await waitFor(
    `the refusal of a subscription to ${subject}`,
    () => from.refusals.slice(before).includes(`subscription ${subject}`),
    TIMEOUT_MS,
  );
  subscription.unsubscribe();
};

/** Subscribes to what is allowed and keeps what arrives. */
export const hearing = async (who: RawConnection, subject: string): Promise<readonly Msg[]> => {
  const heard: Msg[] = [];
  who.nats.subscribe(subject, {
    callback: (error, message) => {
      if (error === null) heard.push(message);
    },
  });
  await who.nats.flush();
  return heard;
};

export interface PubAck {
  readonly stream?: string;
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: { readonly description: string };
}

/** Asks for a turn as the stock client would, with extra headers when given. */
export const requestTurn = async (
  from: RawConnection,
  subject: string,
  given: Readonly<Record<string, string>> = {},
  body: string | Uint8Array = '{}',
): Promise<PubAck> => {
  const written = headers();
  for (const [name, value] of Object.entries(given)) written.set(name, value);
  return (await from.nats.request(subject, body, { timeout: TIMEOUT_MS, headers: written })).json<PubAck>();
};

export const human = (userId: string): Address => ({ kind: 'human', userId });
export const agent = (agentId: string): Address => ({ kind: 'agent', agentId });
export const VERBS = Object.keys(SUBJECTS) as SubjectVerb[];
export const verbsOf = (...uses: readonly string[]): readonly SubjectVerb[] => VERBS.filter((verb) => uses.includes(SUBJECTS[verb].use));
export const INBOXES = [...SERVICE_NAMES, PROVISIONER].map((name) => serviceInboxPrefix(name as ServiceName));
