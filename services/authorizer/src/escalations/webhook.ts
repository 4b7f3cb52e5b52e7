import { createHmac } from 'node:crypto';
import type { EscalationNotice, Instant } from '@sharedos/contracts';

export const SIGNATURE_HEADER = 'sharedos-signature';
export const DELIVERY_HEADER = 'sharedos-delivery';
export const NAMESPACE_HEADER = 'sharedos-namespace';

/** Where the notices of a namespace go besides inboxes, and what they are signed with. */
export interface Webhook {
  readonly url: URL;
  readonly secret: Uint8Array;
  readonly timeoutMs: number;
}

/** One notice on its way to a webhook; the same id is the same notice, however often it arrives. */
export interface WebhookDelivery {
  readonly id: string;
  readonly namespaceId: string;
  readonly notice: EscalationNotice;
}

/**
 * Signs a body: `t=<seconds since the epoch>,v1=<HMAC-SHA-256 of "<t>.<body>", hexadecimal>`. Whoever receives it computes the same,
 * and turns away what is too old.
 */
export const signatureOf = (body: string, secret: Uint8Array, at: Instant): string => {
  const seconds = Math.floor(at / 1_000);
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
};

/** Answers that say that the same request may go better later. */
const LATER = new Set([408, 425, 429]);

/**
 * Sends one notice. No redirect is followed: where notices go is for the operator to say, and nobody else.
 *
 * @returns Whether it arrived, or may be tried again.
 */
export const sendToWebhook = async (
  { url, secret, timeoutMs }: Webhook,
  { id, namespaceId, notice }: WebhookDelivery,
  at: Instant,
  signal: AbortSignal,
): Promise<'done' | 'again' | 'given up'> => {
  const body = JSON.stringify(notice);
  try {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      body,
      headers: {
        'content-type': 'application/json',
        [DELIVERY_HEADER]: id,
        [NAMESPACE_HEADER]: encodeURIComponent(namespaceId),
        [SIGNATURE_HEADER]: signatureOf(body, secret, at),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    // What it answers is of no interest, and may be endless.
    await answer.body?.cancel();
    if (answer.ok) return 'done';
    return answer.status >= 500 || LATER.has(answer.status) ? 'again' : 'given up';
  } catch {
    return 'again';
  }
};
