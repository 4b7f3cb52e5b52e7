import { randomUUID } from 'node:crypto';
import {
  type Bus,
  AuthorityClient,
  type Roots,
  type Route,
  connectBus,
  serveRoutes,
  storeAudit,
  WORK_QUEUES,
  workQueue,
} from '@sharedos/bus';
import { type SharedOS, connectSharedOS } from '@sharedos/client';
import {
  type Address,
  type AuditEvent,
  type AuthorityOpen,
  type CapabilityGrant,
  type GrantEvent,
  type JsonObj,
  type LedgerRecord,
  PROTOCOL_VERSION,
  type PolicyEvent,
  type ServiceName,
  type SettingsEvent,
  type UseTaken,
  addressKey,
  ok,
  sameAddress,
  timestampOf,
  unavailable,
} from '@sharedos/contracts';
import { type EventStore, type StreamId, jetStreamEventStore } from '@sharedos/event-store';
import { type Ledger, type LedgerClaim, jetStreamLedger } from '@sharedos/ledger';
import { createEnvelope } from '@sharedos/runtime';
import { type LocalStack, startLocalStack } from '@sharedos/testing';
import { ToolRegistry } from '@sharedos/tools';
import { type UsageStore, redisUsageStore } from '@sharedos/usage';
import { AuthorityFold } from '../../../services/authorizer/src/fold/authority-fold.ts';
import { composeAuthorizer } from '../../../services/authorizer/src/compose.ts';
import { TurnTokens } from '../../../services/authorizer/src/turns/turn-token.ts';
import { type Replies, ReplyFeed } from '../../../services/tool-executor/src/await-reply.ts';
import { composeToolExecutor } from '../../../services/tool-executor/src/compose.ts';
import { countersOver } from '../../../services/tool-executor/src/reserved-uses.ts';
import { RunningTurns } from '../../../services/tool-executor/src/running-turns.ts';
import type { Script } from '../runner/script.ts';
import { type ServedRouter, serveRouter } from './router.ts';

/** What the test ports of both services answer from: the case that runs now. */
export interface Scene {
  clockMs: number;
  registry: ToolRegistry;
  /** Whether turns have the tool for messages. */
  asksByMessage: boolean;
  toolNamespaces: readonly string[];
  /** `grantSource`, `usageStore`: ports that answer nothing. */
  readonly down: Set<string>;
  readonly scripts: Map<string, Script>;
  /** Told of every audit record once it is stored. */
  onAudit: (event: AuditEvent) => void;
  /** Told of each turn whose authority is asked for; an asker that is not answered asks again. */
  onLoad: (turnId: string) => void;
  /** What broke inside a service while the case ran. */
  readonly defects: string[];
  /** How long an asker waits for the authorizer. */
  deadlineMs: number;
}

/** The services as they are composed, over one NATS and one Redis, with a clock and faults of the test's. */
export interface ServicesSystem {
  readonly scene: Scene;
  readonly executorBus: Bus;
  readonly ledger: Ledger;
  readonly router: ServedRouter;
  readonly replies: Replies;
  authority(): AuthorityClient;
  /** Appends an event to a stream of the log as it stands, past every rule. */
  append(stream: StreamId, event: GrantEvent | PolicyEvent | SettingsEvent): Promise<void>;
  /** Spends uses of a grant before the case begins. */
  spend(grant: CapabilityGrant, count: number): Promise<void>;
  usesOf(namespaceId: string): Promise<ReadonlyMap<string, number>>;
  client(namespaceId: string, principal: Address): Promise<SharedOS>;
  stop(): Promise<void>;
}

/** May say as whom a turn runs, in the namespaces that it was started for. */
export const HOST = { kind: 'service', serviceId: 'conformance-host' } as const satisfies Address;

const DEADLINE_MS = 10_000;
const LEASE_MS = 30_000;
/** Events say when they were appended, and no turn is admitted before that: earlier than the clock of any case. */
const APPENDED_AT = '2000-01-01T00:00:00.000Z';

/** @throws When the servers or the services do not start. */
export const startServices = async (
  principals: readonly { readonly namespaceId: string; readonly principal: Address }[],
): Promise<ServicesSystem> => {
  const stack = await startLocalStack({ principals });
  const closers: (() => Promise<unknown>)[] = [() => stack.stop()];
  const stop = async (): Promise<void> => {
    for (const close of closers.reverse()) await close();
  };
  try {
    const hosted = principals.filter(({ principal }) => sameAddress(principal, HOST));
    const trustedHosts = Object.fromEntries(hosted.map(({ namespaceId }): [string, readonly Address[]] => [namespaceId, [HOST]]));
    return await composed(stack, trustedHosts, closers, stop);
  } catch (error) {
    await stop();
    throw error;
  }
};

const composed = async (
  stack: LocalStack,
  trustedHosts: Roots,
  closers: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<ServicesSystem> => {
  const scene: Scene = {
    clockMs: 0,
    registry: new ToolRegistry(),
    asksByMessage: false,
    toolNamespaces: [],
    down: new Set(),
    scripts: new Map(),
    onAudit: () => undefined,
    onLoad: () => undefined,
    defects: [],
    deadlineMs: DEADLINE_MS,
  };
  const clock = (): number => scene.clockMs;
  const onDefect = (error: unknown, where: string): void => {
    scene.defects.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
  };
  const busOf = async (name: ServiceName): Promise<Bus> => {
    const { user, password, inboxPrefix } = stack.credentials.service(name);
    const bus = await connectBus({ servers: stack.natsUrl, user, pass: password, name: `conformance ${name}`, inboxPrefix });
    closers.push(() => bus.close());
    return bus;
  };
  const audited = (bus: Bus) => {
    const store = storeAudit(bus, DEADLINE_MS, () => undefined);
    return async (event: AuditEvent) => {
      const stored = await store(event);
      if (stored.ok) scene.onAudit(event);
      return stored;
    };
  };

  const authorizerBus = await busOf('authorizer');
  const opened = await jetStreamEventStore({ bus: authorizerBus, onDefect });
  if (!opened.ok) throw new Error(opened.error.reason);
  const store = faultyStore(opened.value, scene.down);
  closers.push(() => store.close());
  const fold = new AuthorityFold(() => undefined);
  fold.follow(store);
  closers.push(() => fold.close());
  const claims = jetStreamLedger(authorizerBus);
  closers.push(() => claims.close());
  const counters = redisUsageStore({
    url: stack.redisUrl,
    settleMs: 0,
    spentUses: async () => {
      const uses = await claims.uses();
      return uses.ok ? ok(uses.value.map(({ namespaceId, use }) => ({ namespaceId, ...use }))) : uses;
    },
  });
  closers.push(() => counters.close());
  if (!(await counters.whenOpen(DEADLINE_MS))) throw new Error('the counters did not open');
  const authorizer = composeAuthorizer({
    store,
    fold,
    usage: faultyUsage(counters, scene.down),
    tokens: new TurnTokens('a secret of more than thirty-two characters'),
    audit: audited(authorizerBus),
    clock,
    limits: { deadlineMs: 4_000, turnGraceMs: 30_000 },
  });
  const loading = (route: Route): Route => {
    if (route.verb !== 'authority.open') return route;
    const answer: Route['answer'] = (body, delivery) => {
      scene.onLoad((JSON.parse(Buffer.from(body).toString('utf8')) as AuthorityOpen).turnId);
      return route.answer(body, delivery);
    };
    return { ...route, answer };
  };
  const serving = { version: '0.1.0', instance: 'conformance', concurrencyMax: 64, onDefect };
  const authorizing = await serveRoutes(authorizerBus, { ...serving, service: 'authorizer', routes: authorizer.map(loading) });
  closers.push(() => authorizing.stop({ graceMs: 0 }));

  const executorBus = await busOf('tool-executor');
  const ledger = toldLedger(jetStreamLedger(executorBus), (event) => scene.onAudit(event));
  closers.push(() => ledger.close());
  const defaults = { maxSteps: 16, timeoutMs: 60_000, drainGraceMs: 0 };
  const executor = composeToolExecutor({
    bus: executorBus,
    get authority() {
      return authority();
    },
    ledger,
    ledgerRoom: { isShort: false },
    // No case over services asks another principal from inside a turn.
    replies: { listen: () => ({ wait: async () => undefined, done: () => undefined }) },
    counters: countersOver(executorBus),
    get registry() {
      return scene.registry;
    },
    envelope: createEnvelope({
      runtime: {
        manifest: { id: 'conformance.scripted', version: '1', protocolVersion: PROTOCOL_VERSION },
        run: (request, host, signal) => (scene.scripts.get(request.executionId) as Script).run(request, host, signal),
      },
      clock,
      ids: randomUUID,
      defaults,
    }),
    defaults,
    running: new RunningTurns(),
    rules: {
      get toolNamespaces() {
        return scene.toolNamespaces;
      },
      horizonMs: 86_400_000,
      skewMs: 30_000,
      trustedHosts,
    },
    audit: audited(executorBus),
    clock,
    ids: randomUUID,
    instance: 'conformance',
    onProviderError: () => undefined,
    onDefect,
  });
  const answering = await serveRoutes(executorBus, { ...serving, service: 'tool-executor', routes: executor.routes });
  closers.push(() => answering.stop({ graceMs: 0 }));
  const queue = workQueue(executorBus, {
    ...WORK_QUEUES['tool-executor'],
    group: 'tool-executor',
    concurrency: 4,
    leaseMs: LEASE_MS,
    handle: executor.take,
    onDefect,
  });
  closers.push(() => queue.stop({ graceMs: 0 }));

  const authority = (): AuthorityClient => new AuthorityClient(executorBus, scene.deadlineMs);

  const routerBus = await busOf('messaging-router');
  const router = await serveRouter({
    bus: routerBus,
    ledger: toldLedger(jetStreamLedger(routerBus), (event) => scene.onAudit(event)),
    scene,
    authority: () => new AuthorityClient(routerBus, scene.deadlineMs),
    audit: audited(routerBus),
    onDefect,
  });
  closers.push(() => router.stop());
  const replies = new ReplyFeed(executorBus, onDefect);
  if (!(await replies.start())) throw new Error('the replies cannot be followed');
  closers.push(() => replies.stop());

  const clients = new Map<string, Promise<SharedOS>>();
  closers.push(async () => {
    for (const client of clients.values()) await (await client).close();
  });
  const revisions = new Map<string, number>();

  return {
    scene,
    executorBus,
    ledger,
    router,
    replies,
    authority,
    append: async (stream, { type, ...data }) => {
      const key = JSON.stringify(stream);
      const event = {
        eventId: randomUUID(),
        type,
        schemaVersion: 1,
        at: APPENDED_AT,
        principal: { kind: 'service', serviceId: 'conformance' } as const,
        correlationId: 'conformance',
        data: data as unknown as JsonObj,
      };
      const appended = await opened.value.append(stream, revisions.get(key) ?? 0, [event]);
      if (!appended.ok) throw new Error(`the log does not take ${type} of ${stream.id}: ${JSON.stringify(appended.error)}`);
      revisions.set(key, appended.value.revision);
    },
    spend: async ({ id, namespaceId, constraints }, count) => {
      for (let use = 0; use < count; use += 1) {
        const operation = randomUUID();
        const budget = { namespaceId, grantId: id, max: constraints.maxUses ?? Number.MAX_SAFE_INTEGER };
        const taken = await counters.take([budget], { operation, turn: operation });
        if (!taken.ok || taken.value.kind === 'exhausted') throw new Error(`the counters do not give use ${use + 1} of ${id}`);
        const [{ ordinal }] = taken.value.uses as readonly [UseTaken];
        const claimed = await ledger.claimUse(namespaceId, { at: timestampOf(clock()), grantId: id, ordinal, operation });
        if (!claimed.ok) throw new Error(`the ledger does not take use ${ordinal} of ${id}`);
      }
    },
    usesOf: async (namespaceId) => {
      const uses = await claims.uses();
      if (!uses.ok) throw new Error(uses.error.reason);
      const counted = new Map<string, number>();
      for (const { use } of uses.value.filter((one) => one.namespaceId === namespaceId))
        counted.set(use.grantId, (counted.get(use.grantId) ?? 0) + 1);
      return counted;
    },
    client: (namespaceId, principal) => {
      const key = `${namespaceId} ${addressKey(principal)}`;
      const known = clients.get(key);
      if (known !== undefined) return known;
      const { user, password } = stack.credentials.principal(namespaceId, principal);
      const connecting = connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId, principal });
      clients.set(key, connecting);
      return connecting;
    },
    stop,
  };
};

/** The log as an authorizer finds it when it does not answer: it can say nothing of how far it reaches. */
const faultyStore = (store: EventStore, down: ReadonlySet<string>): EventStore => ({
  ...store,
  barrier: async (timeoutMs) => (down.has('grantSource') ? unavailable('grantSource is down') : store.barrier(timeoutMs)),
});

const faultyUsage = (usage: UsageStore, down: ReadonlySet<string>): UsageStore => {
  const up =
    <A extends unknown[], R>(ask: (...asked: A) => Promise<R>) =>
    async (...asked: A) =>
      down.has('usageStore') ? unavailable('usageStore is down') : ask(...asked);
  return {
    ...usage,
    count: up(usage.count),
    take: up(usage.take),
  };
};

/** Tells of the audit records inside what was written, once it stands. */
const toldLedger = (ledger: Ledger, onAudit: (event: AuditEvent) => void): Ledger => {
  const tell = (record: LedgerRecord): void => {
    if ('audit' in record) for (const event of record.audit) onAudit(event);
  };
  const toldClaim = (claim: LedgerClaim): LedgerClaim => ({
    key: claim.key,
    get held() {
      return claim.held;
    },
    append: async (record) => {
      const written = await claim.append(record);
      if (written.ok) tell(record);
      return written;
    },
  });
  return {
    ...ledger,
    claim: async (key, record) => {
      const claimed = await ledger.claim(key, record);
      return claimed.ok ? ok(toldClaim(claimed.value)) : claimed;
    },
    resume: (key, history) => toldClaim(ledger.resume(key, history)),
  };
};
