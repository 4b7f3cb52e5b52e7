import { readFile } from 'node:fs/promises';
import type { Bus } from '@sharedos/bus';
import { MessageDeliver, MessageDeliverReply, type Result, err, namespaceSubject, ok } from '@sharedos/contracts';
import { z } from 'zod';
import type { Ports } from '../ports.ts';
import { TurnAuthorities } from '../turns/turn-authorities.ts';
import { reviewRight } from './review-right.ts';
import { reviewersOf } from './reviewers-of.ts';
import { type NoticeMessage, QuestionTeller, type TellPorts } from './tell-of-questions.ts';
import type { Webhook } from './webhook.ts';

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];
const SECRET_BYTES_MIN = 32;
const DELIVERED_MS = 10_000;

/** Settings of who is told of questions, beside inboxes. */
export const tellerSettings = {
  SHAREDOS_ESCALATION_WEBHOOKS: z
    .string()
    .optional()
    .meta({ description: 'Where questions and answers are told, a URL for each namespace, as JSON; nowhere but in inboxes when absent' }),
  SHAREDOS_ESCALATION_WEBHOOK_HOSTS: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((host) => host.trim())
        .filter((host) => host !== ''),
    )
    .meta({ description: 'Hosts (with a port where it is not the usual one) that those URLs may name, separated by commas' }),
  SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'File with the secret of at least 32 bytes that signs what is told there' }),
  SHAREDOS_ESCALATION_WEBHOOK_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(50)
    .max(60_000)
    .default(5_000)
    .meta({ description: 'Longest that one of those requests may take' }),
};

type TellerSettings = z.infer<z.ZodObject<typeof tellerSettings>>;

/** The webhooks that the settings name, by namespace; or the one line that says which setting is wrong. */
export const openWebhooks = async (settings: TellerSettings): Promise<Result<ReadonlyMap<string, Webhook>, string>> => {
  const stated = settings.SHAREDOS_ESCALATION_WEBHOOKS;
  if (stated === undefined) return ok(new Map());
  const urls = readUrls(stated);
  if (urls === undefined) return err('SHAREDOS_ESCALATION_WEBHOOKS must be JSON: {"<namespace>":"https://…"}');
  const file = settings.SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE;
  if (file === undefined) return err('SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE must name the file of the secret that signs what is told');
  const secret = await readFile(file).catch(() => undefined);
  if (secret === undefined || secret.byteLength < SECRET_BYTES_MIN)
    return err(`SHAREDOS_ESCALATION_WEBHOOK_SECRET_FILE must be readable and hold at least ${SECRET_BYTES_MIN} bytes`);
  const webhooks = new Map<string, Webhook>();
  for (const [namespaceId, url] of urls) {
    if (!settings.SHAREDOS_ESCALATION_WEBHOOK_HOSTS.includes(url.host))
      return err(`SHAREDOS_ESCALATION_WEBHOOK_HOSTS must name ${url.host}, where SHAREDOS_ESCALATION_WEBHOOKS tells ${namespaceId}`);
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && LOOPBACK.includes(url.hostname)))
      return err(`SHAREDOS_ESCALATION_WEBHOOKS must tell ${namespaceId} by https`);
    webhooks.set(namespaceId, { url, secret, timeoutMs: settings.SHAREDOS_ESCALATION_WEBHOOK_TIMEOUT_MS });
  }
  return ok(webhooks);
};

const Urls = z.record(z.string(), z.string());

const readUrls = (text: string): readonly (readonly [string, URL])[] | undefined => {
  try {
    const stated = Urls.parse(JSON.parse(text));
    return Object.entries(stated).map(([namespaceId, url]) => [namespaceId, new URL(url)] as const);
  } catch {
    return undefined;
  }
};

/**
 * Who tells of questions, as the settings say.
 *
 * @throws With one line that names the setting, where one of them is wrong.
 */
export const openTeller = async (
  settings: TellerSettings,
  ports: Pick<Ports, 'fold' | 'store' | 'limits' | 'clock'> & Pick<TellPorts, 'log'> & { readonly bus: Pick<Bus, 'request'> },
): Promise<QuestionTeller> => {
  const webhooks = await openWebhooks(settings);
  if (!webhooks.ok) throw new Error(webhooks.error);
  return new QuestionTeller({
    ...ports,
    deliver: deliverNotice(ports.bus),
    reviewersOf: reviewersOf(ports, reviewRight(ports, new TurnAuthorities(ports.fold))),
    webhookOf: (namespaceId) => webhooks.value.get(namespaceId),
  });
};

/** Puts a notice into an inbox by way of the router. */
const deliverNotice =
  (bus: Pick<Bus, 'request'>) =>
  async ({ context, envelope }: NoticeMessage): Promise<'done' | 'again' | 'given up'> => {
    const subject = namespaceSubject('message.deliver', context.namespaceId);
    const body = { context, envelope, callId: 'notice', turnId: envelope.id };
    const answer = await bus.request(subject, MessageDeliver, body, MessageDeliverReply, { timeoutMs: DELIVERED_MS });
    if (!answer.ok) return 'again';
    if (!answer.value.ok) return answer.value.error.retryable === true ? 'again' : 'given up';
    const { status } = answer.value.value;
    if (status === 'accepted' || status === 'delivered') return 'done';
    // Told before, by another replica: once is enough.
    const { error } = answer.value.value;
    return error.retryable === true ? 'again' : error.code === 'replay_conflict' ? 'done' : 'given up';
  };
