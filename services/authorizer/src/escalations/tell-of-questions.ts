import {
  type AccessContext,
  type Address,
  type EscalationItem,
  type EscalationNotice,
  type EscalationQuestion,
  type Instant,
  type Json,
  type MessageEnvelope,
  NOTICE_SENDER,
  PROTOCOL_VERSION,
  type Revision,
  addressKey,
  hashOf,
  sameAddress,
} from '@sharedos/contracts';
import { BackgroundQueue } from './background-queue.ts';
import { type Known, itemOf } from './question.ts';
import type { Tidings } from './tidings.ts';
import { type Webhook, type WebhookDelivery, sendToWebhook } from './webhook.ts';

/** One notice to one principal, as the router delivers it. */
export interface NoticeMessage {
  readonly context: AccessContext;
  readonly envelope: MessageEnvelope;
}

export interface TellPorts {
  /** Puts a notice into an inbox; the same one twice is there once. `again`: nobody knows. */
  readonly deliver: (message: NoticeMessage) => Promise<'done' | 'again' | 'given up'>;
  /** Whom the owner of a question lets review it, beside itself and who is asked. */
  readonly reviewersOf: (namespaceId: string, question: EscalationQuestion) => Promise<readonly Address[]>;
  /** Where notices of a namespace go besides. */
  readonly webhookOf: (namespaceId: string) => Webhook | undefined;
  readonly clock: () => Instant;
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

const WAITING_MAX = 1_000;
const ATTEMPTS_MAX = 5;
const BACKOFF_MOST_MS = 30_000;

interface Telling {
  readonly namespaceId: string;
  readonly item: EscalationItem;
  readonly revision?: Revision;
}

/**
 * Tells reviewers of questions, and whoever asked of answers: in their inboxes, and the namespace's webhook of everything. Nothing
 * waits for it: a question is in the log before anybody is told, and whoever was not told finds it there.
 */
export class QuestionTeller implements Tidings {
  readonly #ports: TellPorts;
  readonly #asking: BackgroundQueue<Telling>;
  readonly #inboxes: BackgroundQueue<NoticeMessage>;
  readonly #webhooks: BackgroundQueue<WebhookDelivery>;

  constructor(ports: TellPorts) {
    this.#ports = ports;
    const bounds = { waitingMax: WAITING_MAX, attemptsMax: ATTEMPTS_MAX, backoffMostMs: BACKOFF_MOST_MS };
    const { log } = ports;
    this.#asking = new BackgroundQueue({
      ...bounds,
      work: (telling) => this.#tellReviewers(telling),
      onGivenUp: ({ item }) => log('reviewers not told', { escalationId: item.question.id }),
    });
    this.#inboxes = new BackgroundQueue({
      ...bounds,
      work: ports.deliver,
      onGivenUp: ({ envelope }) => log('notice not delivered', { messageId: envelope.id }),
    });
    this.#webhooks = new BackgroundQueue({
      ...bounds,
      work: async (delivery, signal) => {
        const webhook = ports.webhookOf(delivery.namespaceId);
        return webhook === undefined ? 'given up' : sendToWebhook(webhook, delivery, ports.clock(), signal);
      },
      onGivenUp: ({ id, namespaceId }) => log('webhook not told', { deliveryId: id, namespaceId }),
    });
  }

  opened(namespaceId: string, question: EscalationQuestion): void {
    const telling = { namespaceId, item: { question, status: 'open' } } as const;
    this.#asking.add(telling);
    this.#tellWebhook(telling);
  }

  answered(namespaceId: string, state: Known, revision: Revision): void {
    const telling = { namespaceId, item: itemOf(state, this.#ports.clock()), revision };
    // Who took a question back knows.
    if (state.status !== 'withdrawn') this.#inboxes.add(messageTo(telling, state.question.requester));
    this.#tellWebhook(telling);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#asking.stop(), this.#inboxes.stop(), this.#webhooks.stop()]);
  }

  async #tellReviewers(telling: Telling): Promise<'done' | 'again'> {
    const { namespaceId, item } = telling;
    const { reviewer, owner, requester } = item.question;
    let registered: readonly Address[];
    try {
      registered = await this.#ports.reviewersOf(namespaceId, item.question);
    } catch {
      return 'again';
    }
    const told = new Map([reviewer, owner, ...registered].map((one) => [addressKey(one), one]));
    for (const one of told.values()) if (!sameAddress(one, requester)) this.#inboxes.add(messageTo(telling, one));
    return 'done';
  }

  #tellWebhook(telling: Telling): void {
    if (this.#ports.webhookOf(telling.namespaceId) === undefined) return;
    this.#webhooks.add({ id: noticeId(telling), namespaceId: telling.namespaceId, notice: noticeOf(telling) });
  }
}

/** What is told of a question, everywhere. The arguments of a call are in the item alone, for those whom it concerns. */
const noticeOf = ({ item: { question, status, answer, grant }, revision }: Telling): EscalationNotice => {
  const { id, requester, owner, purpose, reason, requestedAt, expiresAt, call } = question;
  return {
    escalation: {
      ...{ id, status, requester, owner, purpose, reason, requestedAt },
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(call === undefined ? {} : { tool: call.tool }),
      ...(answer === undefined ? {} : { answer }),
      ...(grant === undefined ? {} : { grantId: grant.id }),
    },
    ...(revision === undefined || grant === undefined ? {} : { revision }),
  };
};

/** The same for everybody who tells the same, so that it counts once. */
const noticeId = ({ namespaceId, item: { question, status } }: Telling, receiver?: Address): string => {
  const { id, requestedAt } = question;
  return `notice-${hashOf({ namespaceId, id, requestedAt, status, ...(receiver === undefined ? {} : { receiver }) }).slice(0, 48)}`;
};

const messageTo = (telling: Telling, receiver: Address): NoticeMessage => {
  const { namespaceId, item } = telling;
  const { purpose, traceId, requestedAt } = item.question;
  const createdAt = item.answer?.at ?? requestedAt;
  const context = { namespaceId, actor: NOTICE_SENDER, authority: receiver, owner: receiver, purpose, traceId };
  return {
    context: { ...context, enabledToolNamespaces: [], now: createdAt },
    envelope: {
      version: PROTOCOL_VERSION,
      id: noticeId(telling, receiver),
      sender: NOTICE_SENDER,
      receiver,
      purpose,
      payload: noticeOf(telling) as unknown as Json,
      traceId,
      createdAt,
    },
  };
};
