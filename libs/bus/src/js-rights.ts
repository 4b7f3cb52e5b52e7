import type { ServiceName } from '@sharedos/contracts';

/**
 * Subjects a user must be allowed to **publish** on for each use that this lib makes of JetStream; the permissions of the broker
 * are generated from it. Every answer comes to the user's own inbox, so none of these needs a right to subscribe.
 *
 * Nobody but services may have any of them: whoever makes a consumer may give it a deliver subject, and so write stored bytes
 * anywhere in the account. A consumer's name is one token, so a prefix in it cannot be told apart by a permission; the filter can.
 */
export const jetStreamRights = {
  /** `publishStored`: the record's own subject (from the subject table) and nothing of the API. */
  publish: (_stream: string): readonly string[] => [],

  /** `readSubject`, `lastOnSubject`: messages asked for one by one, from the leader. */
  read: (stream: string): readonly string[] => [`$JS.API.STREAM.MSG.GET.${stream}`],

  /** `streamHead`: the last sequence; linearizable only where the stream has one replica (design §5). */
  head: (stream: string): readonly string[] => [`$JS.API.STREAM.INFO.${stream}`],

  /**
   * `followStream`: a consumer of our own under a fresh name, pulled from and never acknowledged. The server drops it by itself.
   *
   * @param filterSubject Exactly what is passed to `followStream`; without it, the whole stream.
   */
  follow: (stream: string, filterSubject?: string): readonly string[] => [
    `$JS.API.STREAM.INFO.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.*${filterSubject === undefined ? '' : `.${filterSubject}`}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
  ],

  /** `workQueue`: a durable consumer for each namespace, made, pulled from and acknowledged. @param pattern Subjects of all of them. */
  workOff: (stream: string, pattern: string): readonly string[] => [
    `$JS.API.STREAM.INFO.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.*.${pattern}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.ACK.${stream}.*.>`,
  ],

  /** `forwardQueue`: an existing durable consumer, pulled from and acknowledged. */
  consume: (stream: string, consumer: string): readonly string[] => [
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ],
} as const;

/** Subjects that a service must be allowed to **subscribe** to so that `nats micro` can see it; answers go to the asker's inbox. */
export const discoveryRights = (service: ServiceName): readonly string[] =>
  ['PING', 'INFO', 'STATS'].flatMap((verb) => [`$SRV.${verb}`, `$SRV.${verb}.${service}`, `$SRV.${verb}.${service}.*`]);
