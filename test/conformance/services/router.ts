import { randomUUID } from 'node:crypto';
import { type AuthorityClient, type Bus, followStream, serveRoutes, streamHead, subjectCounts } from '@sharedos/bus';
import {
  type Address,
  type AuditEvent,
  InboxMessage,
  PROTOCOL_VERSION,
  ReplyMessage,
  type Result,
  SUBJECT_ROOT,
  type Unavailable,
  decodeOwnBody,
  namespaceSubject,
  parseSubject,
  principalSubject,
  timestampOf,
  unavailable,
} from '@sharedos/contracts';
import type { Ledger } from '@sharedos/ledger';
import { composeMessagingRouter } from '../../../services/messaging-router/src/compose.ts';
import { inboxHolds } from '../../../services/messaging-router/src/inbox-holds.ts';
import { InboxRuleBook } from '../../../services/messaging-router/src/inbox-rules.ts';
import { ParkedMessages } from '../../../services/messaging-router/src/parked-messages.ts';
import type { Ports } from '../../../services/messaging-router/src/ports.ts';
import { RouteLeases } from '../../../services/messaging-router/src/route-leases.ts';
import { WaitingMessages } from '../../../services/messaging-router/src/waiting-messages.ts';
import type { Scene } from './system.ts';

const ANSWER_MS = 5_000;
const TTL_MS = 3_600_000;

/** The messaging-router as it is composed, in the clock and the faults of the test. */
export interface ServedRouter {
  /** The recipient had a route and closed it. */
  closeRoute(namespaceId: string, recipient: Address): Promise<void>;
  /** Messages in all inboxes of a namespace. */
  delivered(namespaceId: string): Promise<number>;
  stop(): Promise<unknown>;
}

export interface RouterParts {
  readonly bus: Bus;
  readonly ledger: Ledger;
  readonly scene: Scene;
  authority(): AuthorityClient;
  audit(event: AuditEvent): Promise<Result<void, Unavailable>>;
  onDefect(error: unknown, where: string): void;
}

export const serveRouter = async ({ bus, ledger, scene, authority, audit, onDefect }: RouterParts): Promise<ServedRouter> => {
  const clock = (): number => scene.clockMs;
  const routes = new RouteLeases(bus);
  const parked = new ParkedMessages(bus);
  const rules = new InboxRuleBook(bus, clock);
  const waiting: WaitingMessages = new WaitingMessages(() => ports, parked, onDefect);
  const ports: Ports = {
    bus,
    get authority() {
      return authority();
    },
    ledger,
    inboxHolds: inboxHolds(bus),
    rules: {
      // Where a message goes cannot be found out while the inboxes do not answer.
      of: async (...asked) => (scene.down.has('messageTransport') ? unavailable('messageTransport is down') : rules.of(...asked)),
      fault: (...asked) => rules.fault(...asked),
      blocks: (...asked) => rules.blocks(...asked),
    },
    routes,
    parked,
    waiting,
    sendLeaseMs: TTL_MS,
    audit,
    clock,
    ids: randomUUID,
    instance: 'conformance',
  };
  const answering = await answeringRecipients(bus, clock, onDefect);
  const serving = { service: 'messaging-router', version: '0.1.0', instance: 'conformance', concurrencyMax: 64, onDefect } as const;
  const served = await serveRoutes(bus, { ...serving, routes: composeMessagingRouter(ports) });
  return {
    closeRoute: async (namespaceId, recipient) => {
      for (const command of [{ type: 'OpenRoute', at: clock(), ttlMs: TTL_MS } as const, { type: 'CloseRoute', at: clock() } as const]) {
        const changed = await routes.change(namespaceId, recipient, command);
        if (!changed.ok) throw new Error(`the route was not closed: ${JSON.stringify(changed.error)}`);
      }
    },
    delivered: async (namespaceId) => {
      const counts = await subjectCounts(bus, 'MESSAGES', `${namespaceSubject('inbox', namespaceId)}.>`, { timeoutMs: ANSWER_MS });
      if (!counts.ok) throw new Error(`the inboxes could not be counted: ${counts.error.reason}`);
      return Object.values(counts.value).reduce((sum, count) => sum + count, 0);
    },
    stop: async () => {
      await served.stop({ graceMs: 0 });
      await waiting.stop();
      await answering.stop();
    },
  };
};

/** Whoever is asked from inside a turn answers at once, as the router of a case does: what it answers is in the stream of replies. */
const answeringRecipients = async (bus: Bus, clock: () => number, onDefect: RouterParts['onDefect']) => {
  const head = await streamHead(bus, 'MESSAGES', { timeoutMs: ANSWER_MS });
  if (!head.ok) throw new Error(head.error.reason);
  return followStream(bus, {
    stream: 'MESSAGES',
    filterSubject: `${SUBJECT_ROOT}.*.inbox.>`,
    fromSequence: head.value + 1,
    onMessage: async ({ subject, data }) => {
      const parsed = parseSubject(subject);
      const request = decodeOwnBody(InboxMessage, data);
      if (parsed === undefined || !request.ok || request.value.provenance?.source === 'message.send') return;
      const { id, sender, receiver, purpose, traceId } = request.value;
      const reply = {
        version: PROTOCOL_VERSION,
        id: randomUUID(),
        sender: receiver,
        receiver: sender,
        purpose,
        traceId,
        replyTo: id,
      } as const;
      const body = { ...reply, payload: { reply: true }, createdAt: timestampOf(clock()) };
      await bus.publishStored(
        principalSubject('reply', parsed.namespaceId, sender, id),
        { message: ReplyMessage, body },
        { timeoutMs: ANSWER_MS },
      );
    },
    onAlive: () => undefined,
    onDefect,
  });
};
