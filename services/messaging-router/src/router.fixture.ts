import type { Delivery } from '@sharedos/bus';
import {
  type Address,
  type AuditEvent,
  type DeliveryResult,
  type InboxEntry,
  type InboxRules,
  type MessageRoute,
  type MessageSend,
  type NamespaceFacts,
  type Reply,
  SETTINGS_DEFAULT,
  type Verdict,
  err,
  ok,
  revisionOf,
  unavailable,
} from '@sharedos/contracts';
import { authorizationChecked } from '@sharedos/kernel';
import { type Ledger, type OperationKey, memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds, manualClock } from '@sharedos/testing';
import { acknowledgeMessage } from './acknowledge-message.ts';
import { dispatchWaiting } from './dispatch-waiting.ts';
import { InboxRuleBook } from './inbox-rules.ts';
import { memoryMessages } from './memory-messages.fixture.ts';
import { messageRoute } from './message-route.ts';
import { messageStatus } from './message-status.ts';
import { ParkedMessages } from './parked-messages.ts';
import type { Ports } from './ports.ts';
import { readInbox } from './read-inbox.ts';
import { RouteLeases } from './route-leases.ts';
import { sendMessage } from './send-message.ts';
import { takeMessage } from './take-message.ts';

export const NOON = '2026-01-01T12:00:00.000Z';
export const bob = { kind: 'agent', agentId: 'bob' } as const;
export const clerk = { kind: 'agent', agentId: 'clerk' } as const;
const REVISION = revisionOf('log', 3);
export const delivery: Delivery = {
  verb: 'message.send',
  namespaceId: 'w1',
  principal: bob,
  rest: [],
  signal: new AbortController().signal,
};
const key: OperationKey = { namespaceId: 'w1', kind: 'message', requester: bob, id: 'm-1' };
const message: MessageSend = {
  id: 'm-1',
  receiver: clerk,
  purpose: 'p1',
  payload: { text: 'a secret payload' },
  traceId: 'trace-1',
  createdAt: NOON,
};

/** The book of rules, with a recipient that a test speaks for. */
class SaidRules extends InboxRuleBook {
  readonly #said: { readonly rules: InboxRules };

  constructor(said: { readonly rules: InboxRules }, clock: Ports['clock']) {
    super(undefined as unknown as Ports['bus'], clock);
    this.#said = said;
  }

  override async of() {
    return ok({ rules: this.#said.rules, version: 0 });
  }
}

type Said = Partial<Verdict> | 'no answer';

export const routerWorld = (options: { readonly through?: (ledger: Ledger) => Ledger } = {}) => {
  const clock = manualClock(NOON);
  const log = memoryRecordLog();
  const ledger = (options.through ?? ((same) => same))(memoryLedger({ log, readBackMs: 10 }));
  const delivered: string[] = [];
  const distrusted: unknown[] = [];
  const told: AuditEvent[] = [];
  const operations: (string | undefined)[] = [];
  const world = {
    clock,
    log,
    ledger,
    /** Subjects of inboxes that got a message. */
    delivered,
    distrusted,
    /** How the recipient is registered, where it is. */
    registered: {} as Partial<NamespaceFacts>,
    /** What the recipient says of whom it hears. */
    rules: { blocked: [] } as InboxRules,
    /** Whether a look into the inbox finds the message. */
    holds: false,
    /** Records written without a place in the ledger. */
    told,
    operations,
    says: (): Said => ({}),
    inbox: () => ok({ stream: 'MESSAGES', sequence: 1, duplicate: false }) as Awaited<ReturnType<Ports['bus']['publishStored']>>,
    send: (more: Partial<MessageSend> = {}, from: Delivery = delivery): Promise<Reply<DeliveryResult>> =>
      sendMessage(ports)({ ...message, ...more }, from),
    records: async (id = key.id) => {
      const read = await memoryLedger({ log }).read({ ...key, id });
      return read.ok ? (read.value?.records ?? []) : [];
    },
    /** What became of a message of bob's, as it is told to him. */
    fate: (id = key.id) => world.fateFor(bob, id),
    fateFor: async (principal: Address, id = key.id) => {
      const status = await messageStatus(ports)({ id }, { ...delivery, principal });
      return status.ok
        ? [status.value.state, ...(status.value.code === undefined ? [] : [status.value.code])].join(' ')
        : status.error.code;
    },
    /** What the recipient does with its route. */
    route: (body: MessageRoute, of: Address = clerk) => messageRoute(ports)(body, { ...delivery, principal: of }),
    /** What waits for the recipient leaves, where it can. */
    letGo: () => dispatchWaiting(ports, 'w1', clerk),
    read: async (of: Address = clerk): Promise<readonly InboxEntry[]> => {
      const inbox = await readInbox(ports)({}, { ...delivery, principal: of });
      if (!inbox.ok) throw new Error(inbox.error.code);
      return inbox.value.messages;
    },
    acknowledge: async (sequence: number, of: Address = clerk) => {
      const acknowledged = await acknowledgeMessage(ports)({ sequence }, { ...delivery, principal: of });
      return acknowledged.ok ? acknowledged.value.acknowledged : acknowledged.error.code;
    },
    /** A turn of the recipient is about to take the message. */
    take: (lease: number, id = key.id) =>
      takeMessage(ports)({ sender: bob, receiver: clerk, id, lease }, { ...delivery, verb: 'message.take' }),
    /** Recipients that are to be looked after. */
    woken: [] as string[],
    /** What happens right before or after a message is brought to where it goes, or once it was parked. */
    beforeHandOver: async (): Promise<unknown> => undefined,
    afterHandOver: async (): Promise<unknown> => undefined,
    afterParking: (): void => undefined,
    /** A copy of the message is brought to the inbox once more, long after the first. */
    putAgain: async () => {
      const [sent] = world.sent;
      if (sent !== undefined) await messages.publishStored(...sent);
    },
    sent: [] as Parameters<Ports['bus']['publishStored']>[],
    messages: undefined as unknown as ReturnType<typeof memoryMessages>,
    audit: async () =>
      (await world.records())
        .flatMap((record) => ('audit' in record ? record.audit : []))
        .map(({ type, outcome, reason }) => [type, outcome, ...(reason === undefined ? [] : [reason])]),
  };
  const messages = memoryMessages(() => clock.now());
  world.messages = messages;
  const isKept = (subject: string): boolean => /^sharedos\.v1\.[^.]+\.(route|parked)\./.test(subject);
  const bus: Pick<Ports['bus'], 'publishStored' | 'request' | 'connected' | 'replies'> = {
    connected: true,
    replies: messages.bus.replies,
    publishStored: async (subject, content, publishing) => {
      if (isKept(subject)) {
        const kept = await messages.publishStored(subject, content, publishing);
        if (subject.includes('.parked.')) world.afterParking();
        return kept;
      }
      const [before, after] = [world.beforeHandOver, world.afterHandOver];
      world.beforeHandOver = world.afterHandOver = async () => undefined;
      await before();
      const answered = world.inbox();
      if (!answered.ok) return answered;
      delivered.push(subject);
      const { messageId: _, ...again } = publishing;
      world.sent.push([subject, content, again]);
      const stored = await messages.publishStored(subject, content, publishing);
      await after();
      return stored;
    },
    request: async (subject, _, body) => {
      distrusted.push([subject, body]);
      return unavailable('nobody listens');
    },
  };
  const authority: Ports['authority'] = {
    namespace: async () => ok({ revision: REVISION, settings: SETTINGS_DEFAULT, policyVersion: 0, ...world.registered }),
    open: async () =>
      ok({
        status: 'resolved',
        token: 't',
        revision: REVISION,
        admittedAt: NOON,
        validUntil: NOON,
        snapshot: { hash: 'a'.repeat(64), grantIds: [], grantCount: 0, loadedAt: NOON },
      }),
    decide: async (_, context, question, [id]) => {
      if (question.kind !== 'authorize') throw new Error('a send is authorized plainly');
      operations.push(question.operation);
      const said = world.says();
      if (said === 'no answer') return err({ code: 'authority_unavailable', reason: 'silence' });
      const { status = 'allowed', code = status } = said;
      const decision =
        status === 'allowed' ? { allowed: true, reasonCode: code, matchedGrantId: 'g' } : { allowed: false, reasonCode: code };
      const event = authorizationChecked(
        { id, at: clock.now(), context },
        { request: question.request, decided: { decision }, consume: true, operationId: question.operationId },
      );
      return ok({ revision: REVISION, status, code, decision, audit: [event], ...said });
    },
  };
  const ports: Ports = {
    bus: bus as Ports['bus'],
    authority,
    ledger,
    inboxHolds: async () => world.holds,
    sendLeaseMs: 60_000,
    rules: new SaidRules(world, clock.now.bind(clock)),
    routes: new RouteLeases(bus as Ports['bus']),
    parked: new ParkedMessages(bus as Ports['bus']),
    waiting: { wake: (namespaceId, { kind }) => void world.woken.push(`${namespaceId} ${kind}`) },
    audit: async (event) => {
      told.push(event);
      return ok(undefined);
    },
    clock: () => clock.now(),
    ids: countingIds('id'),
    instance: 'here',
  };
  return world;
};

export const statusOf = (reply: Reply<DeliveryResult>) =>
  reply.ok ? ('error' in reply.value ? `${reply.value.status} ${reply.value.error.code}` : reply.value.status) : reply.error.code;
