import { REQUEST_BYTES_MAX, SUBJECT_ROOT, type StreamName } from '@sharedos/contracts';
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  nanos,
} from 'nats';
import { DURABLE_CONSUMERS, streamSubjects } from './permissions.ts';

export interface StreamOptions {
  readonly storage?: 'file' | 'memory';
  /** Other sizes than the usual ones, in bytes; the server sets the room aside at once. LOG has no bound unless one is given here. */
  readonly bytesMax?: Partial<Readonly<Record<StreamName, number>>>;
  /** Copies of each stream in a cluster. Default 1. */
  readonly replicas?: number;
  /** The oldest nats-server that may keep copies; the one that is known to lose none when absent. For tests. */
  readonly oldestWithCopies?: string;
}

/** What is asked of the broker for one stream; whatever is not named keeps the server's default. */
export type StreamSettings = Partial<StreamConfig> & Pick<StreamConfig, 'name' | 'subjects' | 'retention' | 'storage' | 'discard'>;
export type ConsumerSettings = Partial<ConsumerConfig> & { readonly durable_name: string };

const LEASE_MS = 30_000;
const TURNS_QUEUED_PER_PRINCIPAL_MAX = 50;
const MESSAGES_PER_INBOX_MAX = 1_000;
const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;

/**
 * The smallest window in which two messages with one `Nats-Msg-Id` count as one; the server knows no way to switch it off.
 * De-duplication is per stream, not per subject, so on TURNS an id that one tenant chose could swallow another's request.
 */
const SHORTEST_DUPLICATE_WINDOW_MS = 100;

// Stated and not left out: an update keeps what it does not name, and a claim in a stream with an age can be made twice.
const UNLIMITED = {
  max_age: 0,
  max_msgs: -1,
  max_bytes: -1,
  max_msg_size: -1,
  max_msgs_per_subject: -1,
  discard_new_per_subject: false,
  duplicate_window: nanos(120_000),
  // A header of a publisher's would otherwise empty the stream.
  allow_rollup_hdrs: false,
  allow_direct: false,
  deny_delete: false,
  deny_purge: false,
  no_ack: false,
} as const;

/**
 * The streams of design §4 and §6. All refuse new messages when full (`discard: new`) except TURN_EVENTS, whose content can be
 * asked for again: forgetting a claim, a record or a queued request would be worse than not accepting the next.
 */
export const streamSettings = (options: StreamOptions = {}): Readonly<Record<StreamName, StreamSettings>> => {
  const stream = (name: StreamName, settings: Partial<StreamConfig>): StreamSettings => ({
    name,
    subjects: [...streamSubjects(name)],
    retention: RetentionPolicy.Limits,
    storage: options.storage === 'memory' ? StorageType.Memory : StorageType.File,
    discard: DiscardPolicy.New,
    ...UNLIMITED,
    num_replicas: options.replicas ?? 1,
    ...settings,
    ...(options.bytesMax?.[name] === undefined ? {} : { max_bytes: options.bytesMax[name] }),
  });
  return {
    TURNS: stream('TURNS', {
      retention: RetentionPolicy.Workqueue,
      discard_new_per_subject: true,
      max_msgs_per_subject: TURNS_QUEUED_PER_PRINCIPAL_MAX,
      max_msg_size: REQUEST_BYTES_MAX,
      max_bytes: 256 * MIB,
      duplicate_window: nanos(SHORTEST_DUPLICATE_WINDOW_MS),
    }),
    TURN_EVENTS: stream('TURN_EVENTS', { discard: DiscardPolicy.Old, max_age: nanos(7 * DAY_MS), max_bytes: 1024 * MIB }),
    // No age and no limit per subject: "expected last sequence 0" would succeed again, and a claim be made twice.
    LEDGER: stream('LEDGER', { max_bytes: 2048 * MIB }),
    MESSAGES: stream('MESSAGES', { discard_new_per_subject: true, max_msgs_per_subject: MESSAGES_PER_INBOX_MAX, max_bytes: 256 * MIB }),
    AUDIT: stream('AUDIT', {
      max_bytes: 2048 * MIB,
      republish: { src: `${SUBJECT_ROOT}.*.audit.>`, dest: `${SUBJECT_ROOT}.{{wildcard(1)}}.feed.audit.>` },
    }),
    SEALS: stream('SEALS', {
      deny_delete: true,
      deny_purge: true,
      republish: { src: `${SUBJECT_ROOT}.*.seal.>`, dest: `${SUBJECT_ROOT}.{{wildcard(1)}}.feed.seal.>` },
    }),
    LOG: stream('LOG', { deny_delete: true, deny_purge: true }),
  };
};

/** The consumers that outlive their readers, by stream. They are pulled from, and forget nothing that was not acknowledged. */
export const consumerSettings = (): readonly { readonly stream: StreamName; readonly settings: ConsumerSettings }[] =>
  Object.values(DURABLE_CONSUMERS).map(({ stream, name }) => ({
    stream,
    settings: {
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      replay_policy: ReplayPolicy.Instant,
      // After a last delivery a message would stay for ever with nobody to answer it.
      max_deliver: -1,
      ack_wait: nanos(LEASE_MS),
      max_ack_pending: 1_024,
      max_waiting: 512,
    },
  }));
