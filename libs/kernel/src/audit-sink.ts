import { type AccessContext, type AuditEvent, type AuditOutcome, type AuditType, PROTOCOL_VERSION, randomId } from '@sharedos/contracts';
import { frozenCopy } from './contract-value.ts';

/** Where records go. Each is frozen; its `id` is the only key to tell repeats by. */
export interface AuditSink {
  record(event: AuditEvent): Promise<void>;
}

/** Discards everything: what a kernel has when its host installs no sink. */
export class NoopAuditSink implements AuditSink {
  async record(_event: AuditEvent): Promise<void> {}
}

/** Writes to each sink in order, each getting its own copy. The first failure stops the rest. */
export class CompositeAuditSink implements AuditSink {
  readonly #sinks: readonly AuditSink[];

  constructor(sinks: readonly AuditSink[]) {
    this.#sinks = [...sinks];
  }

  async record(event: AuditEvent): Promise<void> {
    for (const sink of this.#sinks) await sink.record(frozenCopy(event));
  }
}

/** A record that must precede what it records could not be written, so nothing followed. The cause is the sink's own error. */
export class AuditUnavailableError extends Error {
  override readonly name = 'AuditUnavailableError';
  readonly code = 'audit_unavailable';

  constructor(cause: unknown) {
    super('a record that has to precede an effect could not be written', { cause });
  }
}

export type AuditEventType = AuditType;
export type { AuditOutcome };

/** Which boundary made a record of an operation or an ending. */
export type AuditSource = 'kernel' | 'envelope';

/** What an emitter states; the rest comes from the trusted context. */
export type AuditEventInput = Omit<
  AuditEvent,
  'version' | 'id' | 'at' | 'traceId' | 'namespaceId' | 'actor' | 'authority' | 'owner' | 'purpose'
>;

/**
 * One record, stamped from the trusted context.
 *
 * @param createId Must never repeat: two records with one id are one to every sink that tells repeats apart.
 */
export const auditEvent = (context: AccessContext, event: AuditEventInput, createId: () => string = randomId): AuditEvent => {
  const { traceId, namespaceId, actor, authority, owner, purpose, now } = context;
  return frozenCopy({
    version: PROTOCOL_VERSION,
    id: createId(),
    at: now,
    traceId,
    namespaceId,
    actor,
    authority,
    owner,
    purpose,
    ...event,
  } as AuditEvent);
};
