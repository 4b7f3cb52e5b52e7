import { type SharedOS, connectSharedOS } from '@sharedos/client';
import { type Address, type LedgerRecord, addressKey, parseSubject } from '@sharedos/contracts';
import { type LocalStack, startLocalStack, waitFor } from '@sharedos/testing';
import { connectAs, readOperations, readStream, readUses } from '../../support/evidence.ts';
import { ALICE, NAMESPACE } from '../../support/test-system.ts';
import { type Finding, allHold } from '../finding.ts';
import { type Phases, phasesOf } from '../turns/phases.ts';
import { type Facts, judge } from './judge.ts';
import { type Observed, leaseRoute, receive, sendAll } from './load.ts';
import { type Plan, RECIPIENTS, SENDERS, planOf } from './plan.ts';
import { DyingRouters } from './routers.ts';

export interface MessagesOptions {
  readonly seed: number;
  readonly messages: number;
  /** How many routers die; one for about 100 messages when absent. */
  readonly deaths?: number | undefined;
}

export interface MessagesReport extends MessagesOptions {
  readonly accepted: number;
  readonly parked: number;
  /** Deaths that were met, by the step. */
  readonly met: readonly string[];
  readonly findings: readonly Finding[];
  readonly ok: boolean;
  readonly seconds: number;
}

export interface Watchers {
  readonly onProgress?: ((line: string) => void) | undefined;
  readonly onLine?: ((line: string) => void) | undefined;
}

const SENDER_NAMES: readonly Address[] = Array.from({ length: SENDERS }, (_, index) => ({ kind: 'human', userId: `sender-${index}` }));
const RECIPIENT_NAMES: readonly Address[] = Array.from({ length: RECIPIENTS }, (_, index) => ({
  kind: 'service',
  serviceId: `recipient-${index}`,
}));
const REQUEST_MS = 15_000;
const MESSAGES_PER_DEATH = 100;
const PREPARED_MS = 300_000;
const SENT_MS = 600_000;
const SENT_MS_A_MESSAGE = 150;
const QUIET_MS = 300_000;

const quiet = (): void => undefined;

/** Sends messages through two routers that die again and again, lets recipients acknowledge them, and judges by the streams. */
export const runMessages = async (
  options: MessagesOptions,
  { onProgress = quiet, onLine = quiet }: Watchers = {},
): Promise<MessagesReport> => {
  const startedAt = performance.now();
  const deaths = options.deaths ?? Math.max(8, Math.ceil(options.messages / MESSAGES_PER_DEATH));
  const plan = planOf({ ...options, deaths });
  const phases = phasesOf(onProgress);
  const stack = await startLocalStack({
    principals: [ALICE, ...SENDER_NAMES, ...RECIPIENT_NAMES].map((principal) => ({ namespaceId: NAMESPACE, principal })),
    roots: { [NAMESPACE]: [ALICE] },
    onProgress,
  });
  const clients = clientsOf(stack);
  const routers = new DyingRouters(stack, plan.deaths, onLine);
  const observed: Observed = { accepted: new Set(), refused: new Map(), handed: new Map() };
  try {
    const ready = await phases.run('starting the services and granting', PREPARED_MS, async () => {
      await stack.startService('authorizer');
      await stack.startService('audit-projector');
      await routers.start();
      await grant(await clients.of(ALICE), plan);
      return true;
    });
    if (ready === true) await underDeath(plan, clients, routers, observed, phases);
    const facts = await phases.run('reading the streams', QUIET_MS, () => gather(stack, plan));
    const findings = [
      { rule: 'every phase of the run came to its end in time', contradictions: phases.failures },
      ...(facts === undefined ? [] : judge(plan, facts, observed)),
    ];
    const parked = [...(facts?.records.values() ?? [])].filter((records) => records.some(isParking)).length;
    return {
      ...options,
      accepted: observed.accepted.size,
      parked,
      met: routers.met,
      findings,
      ok: allHold(findings),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    routers.stop();
    await clients.close();
    await stack.stop();
  }
};

const underDeath = async (plan: Plan, clients: Clients, routers: DyingRouters, observed: Observed, phases: Phases): Promise<void> => {
  let sent = 0;
  const { messages } = plan;
  await phases.run(
    'sending',
    SENT_MS + messages.length * SENT_MS_A_MESSAGE,
    (signal) => play(plan, clients, routers, observed, signal, (count) => (sent = count)),
    () =>
      `${sent} of ${messages.length} sent, ${observed.accepted.size} accepted, ${routers.met.length} routers died, ${routers.left} to come`,
  );
};

const isParking = (record: LedgerRecord): boolean => record.type === 'ended' && record.delivery?.type === 'MessageParked';

/** One bounded grant over all inboxes, so that every message counts. */
const grant = async ({ grants }: SharedOS, { messages }: Plan): Promise<void> => {
  for (const [index, sender] of SENDER_NAMES.entries()) {
    const maxUses = Math.max(1, messages.filter(({ from }) => from === index).length);
    const capability = {
      resource: { namespace: 'sharedos.messaging', path: ['service'] },
      actions: ['send'],
      scope: 'descendants' as const,
    };
    const issued = await grants.issue({ id: `writes-${index}`, subject: sender, capabilities: [capability], constraints: { maxUses } });
    if (!issued.ok) throw new Error(JSON.stringify(issued.error));
  }
};

type Clients = ReturnType<typeof clientsOf>;

/** Sends and receives until all is sent and nothing more is on its way to anybody. */
const play = async (
  plan: Plan,
  clients: Clients,
  routers: DyingRouters,
  observed: Observed,
  signal: AbortSignal,
  onSent: (count: number) => void,
): Promise<void> => {
  const routes = await Promise.all(
    RECIPIENT_NAMES.filter((_, index) => index % 2 === 1).map(async (recipient) => leaseRoute(await clients.of(recipient))),
  );
  const away: Promise<unknown>[] = [];
  let isOver = false;
  const receiving = RECIPIENT_NAMES.map(async (recipient) => {
    const client = await clients.of(recipient);
    const nothingWaits = async (): Promise<boolean> => {
      if (!isOver) return false;
      const shown = await client.messages.route.show();
      return shown.ok && shown.value.parked === 0;
    };
    await receive(client, addressKey(recipient), observed, nothingWaits);
  });
  await sendAll({
    plan,
    clientOf: (sender) => clients.of(SENDER_NAMES[sender] as Address),
    recipientOf: (recipient) => RECIPIENT_NAMES[recipient] as Address,
    observed,
    signal,
    onSent: (count) => {
      onSent(count);
      if (plan.pauses.includes(count)) away.push(...routes.map((route) => route.away()));
    },
  });
  await Promise.all(away);
  await routers.calm();
  isOver = true;
  await Promise.all(receiving);
};

/** What the streams say, past every service. */
const gather = async (stack: LocalStack, { messages }: Plan): Promise<Facts> => {
  const [projector, router] = await Promise.all([connectAs(stack, 'audit-projector'), connectAs(stack, 'messaging-router')]);
  try {
    const wanted = new Set(messages.map(({ id }) => id));
    const records = new Map<string, readonly LedgerRecord[]>();
    for (const operation of await readOperations(projector)) {
      const [first] = operation;
      if (first?.type === 'claimed' && wanted.has(first.operationId)) records.set(first.operationId, operation);
    }
    const left = await waitFor(
      'the inboxes',
      async () => {
        const kept = (await readStream(router, 'MESSAGES')).map(({ subject }) => parseSubject(subject)?.verb);
        return { kept: kept.filter((verb) => verb === 'inbox' || verb === 'parked').map(String) };
      },
      QUIET_MS,
    );
    const uses = await Promise.all(SENDER_NAMES.map((_, index) => readUses(router, `writes-${index}`)));
    return { records, left: left.kept, uses: uses.flat().map(({ operation }) => operation) };
  } finally {
    await Promise.all([projector.close(), router.close()]);
  }
};

const clientsOf = (stack: LocalStack) => {
  const clients = new Map<string, Promise<SharedOS>>();
  const of = (principal: Address): Promise<SharedOS> => {
    const key = addressKey(principal);
    const known = clients.get(key);
    if (known !== undefined) return known;
    const { user, password } = stack.credentials.principal(NAMESPACE, principal);
    const made = connectSharedOS({
      servers: stack.natsUrl,
      user,
      password,
      namespaceId: NAMESPACE,
      principal,
      requestTimeoutMs: REQUEST_MS,
    });
    clients.set(key, made);
    return made;
  };
  const close = async (): Promise<void> => {
    for (const made of clients.values()) await made.then((connected) => connected.close()).catch(() => undefined);
  };
  return { of, close };
};
