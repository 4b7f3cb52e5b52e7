import {
  type AccessContext,
  type AuditEvent,
  type CapabilityGrant,
  type DeliveryResult,
  type MessageEnvelope,
  type ToolNamespaceUpdate,
  canonicalJson,
  sameAddress,
} from '@sharedos/contracts';
import type { AuditSink } from './audit-sink.ts';
import type { GrantSource } from './authority-resolver.ts';
import type { GrantUsageStore } from './authorizer.ts';
import { ContractError } from './contract-errors.ts';
import { frozenCopy } from './contract-value.ts';
import type { DelegationChainResolver } from './delegation-chain.ts';
import { parseGrant } from './parsed-grant.ts';
import type { MessageTransport } from './message-ports.ts';
import type { OperationClaim, OperationEnd, OperationKey, OperationRecord, OperationReplayStore } from './operation-replay.ts';
import { type ToolNamespaceSettingsStore, applyToolNamespaceUpdate } from './tool-namespace-settings.ts';

// Ports of one process: enough to use a kernel without any server, and for tests. Nothing here outlives its process.

const keyOf = (namespaceId: string, id: string): string => JSON.stringify([namespaceId, id]);

/** Counts uses in this process alone, each take in one step. */
export class InMemoryGrantUsageStore implements GrantUsageStore {
  readonly #used = new Map<string, number>();

  async getUsage(namespaceId: string, grantId: string): Promise<number> {
    return this.#used.get(keyOf(namespaceId, grantId)) ?? 0;
  }

  async tryConsume(namespaceId: string, grantId: string, maximumUses: number): Promise<boolean> {
    const key = keyOf(namespaceId, grantId);
    const used = this.#used.get(key) ?? 0;
    if (used >= maximumUses) return false;
    this.#used.set(key, used + 1);
    return true;
  }
}

/** An issuing store: the grants of a process, and the ancestors that derived ones name. An id is never used twice. */
export class InMemoryGrantStore implements GrantSource, DelegationChainResolver {
  readonly #grants = new Map<string, CapabilityGrant>();

  /** @throws ContractError for what is no grant, or an id that was used before. */
  issue(grant: CapabilityGrant): void {
    const parsed = parseGrant(grant);
    if (!parsed.ok) throw new ContractError('not a valid grant');
    const key = keyOf(grant.namespaceId, grant.id);
    if (this.#grants.has(key)) throw new ContractError('the id of a grant is never used twice');
    this.#grants.set(key, frozenCopy(parsed.value.grant));
  }

  /** Stamps a grant as revoked; a second time changes nothing, and it is kept so that its descendants can be judged. */
  revoke(namespaceId: string, grantId: string, at: string): void {
    const key = keyOf(namespaceId, grantId);
    const grant = this.#grants.get(key);
    if (grant === undefined) throw new ContractError('no such grant was issued');
    if (grant.revokedAt === undefined) this.#grants.set(key, frozenCopy({ ...grant, revokedAt: at }));
  }

  async load({ namespaceId, actor, authority }: AccessContext): Promise<readonly CapabilityGrant[]> {
    return [...this.#grants.values()].filter(
      (grant) => grant.namespaceId === namespaceId && sameAddress(grant.subject, actor) && sameAddress(grant.issuer, authority),
    );
  }

  async resolve(namespaceId: string, grantId: string): Promise<CapabilityGrant | undefined> {
    return this.#grants.get(keyOf(namespaceId, grantId));
  }
}

/** Keeps what is recorded, up to a bound; beyond it a record is refused, never another dropped. */
export class InMemoryAuditSink implements AuditSink {
  readonly events: AuditEvent[] = [];
  readonly #max: number;

  /** @param max Records kept; 100 000 when absent. */
  constructor(max: number = 100_000) {
    this.#max = max;
  }

  async record(event: AuditEvent): Promise<void> {
    if (this.events.length >= this.#max) throw new Error('the records of this sink are full');
    this.events.push(frozenCopy(event));
  }
}

/** Selections of tool namespaces, one for each tenant and owner. A host may name the only ones an update can switch on. */
export class InMemoryToolNamespaceSettings implements ToolNamespaceSettingsStore {
  readonly #selected = new Map<string, readonly string[]>();
  readonly #allowed: ReadonlySet<string> | undefined;

  constructor(allowed?: readonly string[]) {
    this.#allowed = allowed === undefined ? undefined : new Set(allowed);
  }

  async applyUpdate(context: AccessContext, update: ToolNamespaceUpdate): Promise<readonly string[]> {
    const key = keyOf(context.namespaceId, JSON.stringify(context.owner));
    const current = this.#selected.get(key) ?? context.enabledToolNamespaces;
    const selection = applyToolNamespaceUpdate(current, update).filter(
      (name) => current.includes(name) || this.#allowed === undefined || this.#allowed.has(name),
    );
    this.#selected.set(key, selection);
    return selection;
  }
}

/** Remembers operations as long as this process lives, and forgets none of them. */
export class InMemoryOperationReplayStore implements OperationReplayStore {
  readonly #records = new Map<string, { record: OperationRecord; readonly token: string }>();

  async claim(key: OperationKey, fingerprint: string): Promise<OperationClaim> {
    const name = canonicalJson(key);
    const known = this.#records.get(name);
    if (known !== undefined) return { claimed: false, record: known.record };
    const token = String(this.#records.size);
    this.#records.set(name, { record: { fingerprint, state: 'pending' }, token });
    return { claimed: true, token };
  }

  async settle(key: OperationKey, token: string, end: OperationEnd): Promise<boolean> {
    const known = this.#records.get(canonicalJson(key));
    if (known?.token !== token || known.record.state !== 'pending') return false;
    known.record = { fingerprint: known.record.fingerprint, ...end };
    return true;
  }
}

/** Keeps every message it is given, and says that it took it. */
export class InMemoryMessageTransport implements MessageTransport {
  readonly delivered: MessageEnvelope[] = [];

  async deliver(context: AccessContext, envelope: MessageEnvelope): Promise<DeliveryResult> {
    this.delivered.push(envelope);
    return { status: 'accepted', messageId: envelope.id, timestamp: context.now };
  }
}
