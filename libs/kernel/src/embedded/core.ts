import {
  AccessContext,
  type AuditEvent,
  type AuthorizationRequest,
  type Instant,
  type ProtocolError,
  type ToolCall,
  instantOf,
  randomId,
} from '@sharedos/contracts';
import { type AuditMark, authorityResolved } from '../audit.ts';
import { type AuditSink, AuditUnavailableError, NoopAuditSink } from '../audit-sink.ts';
import type { HeldAuthority, PolicyResolution } from '../authority.ts';
import type { CompiledAuthority } from '../compiled-authority.ts';
import {
  type AuthorityResolution,
  type GrantSource,
  type PolicySource,
  TrustedAuthorityResolver,
  heldBy,
  turnAuthorityKey,
  withPolicy,
} from '../authority-resolver.ts';
import { CapabilityAuthorizer, type Decider, deciderOf } from '../authorizer.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue, frozenCopy, sealed } from '../contract-value.ts';
import {
  type MessageCapabilityResolver,
  type MessageRequestRouter,
  type MessageTransport,
  RecipientScopedMessageCapabilityResolver,
} from '../message-ports.ts';
import type { OperationReplayStore } from '../operation-replay.ts';
import { type ProviderErrorContext, type ProviderErrorReporter, reportContainedError } from '../provider-error.ts';
import { ResourceProviderRegistry } from '../resource-provider.ts';
import { SPAN, type SpanSink, measure } from '../spans.ts';
import type { ContextToolProvider } from '../tool-handler.ts';
import type { ToolNamespaceSettingsStore } from '../tool-namespace-settings.ts';
import { ToolRegistry } from '../tool-registry.ts';
import { type Lease, TurnLeases, newLease } from '../turn-leases.ts';

export interface SharedOSKernelOptions {
  /** The trusted boundary that loads authority. Without one, a kernel could only refuse. */
  readonly grantSource: GrantSource;
  /** Loads the policy that the authorizer's ceiling decides by, once a turn and beside the grants. */
  readonly policySource?: PolicySource;
  readonly authorizer?: CapabilityAuthorizer;
  readonly resources?: ResourceProviderRegistry;
  readonly tools?: ToolRegistry;
  readonly toolProviders?: readonly ContextToolProvider[];
  readonly toolNamespaceSettings?: ToolNamespaceSettingsStore;
  readonly messageTransport?: MessageTransport;
  /** Together with a transport it gives every context the tool `messages.request`. */
  readonly messageRequestRouter?: MessageRequestRouter;
  readonly messageCapabilityResolver?: MessageCapabilityResolver;
  readonly createMessageId?: (context: AccessContext, call: ToolCall) => string;
  /** Ids of records; random when absent. They must never repeat. */
  readonly createAuditId?: () => string;
  readonly audit?: AuditSink;
  /** Hears of a record that could not be written after its effect. */
  readonly onAuditError?: (error: unknown, event: AuditEvent) => void | Promise<void>;
  /** Hears what a port threw, as it was thrown. */
  readonly onProviderError?: ProviderErrorReporter;
  readonly spans?: SpanSink;
  /** Gives every context the tool `sharedos.card`. @see design.md §9.14 */
  readonly agentCardTool?: boolean;
  /** Remembers operations: one that is presented twice is done once. Absent, it is done again. */
  readonly operationReplay?: OperationReplayStore;
  /** Refuses a call inside an open turn that was made before it, or after the instant of the operation (`stale_request`). */
  readonly refuseStaleCalls?: boolean;
}

export interface KernelOperationOptions {
  readonly signal?: AbortSignal;
}

/** The authority and the catalogue of one operation. */
export interface Held {
  readonly resolution: AuthorityResolution;
  readonly lease: Lease;
  /** Whether a turn was open for it. */
  readonly inTurn: boolean;
}

/** What every operation of a kernel works with. */
export class KernelCore {
  readonly options: SharedOSKernelOptions;
  readonly decider: Decider;
  readonly tools: ToolRegistry;
  readonly resources: ResourceProviderRegistry;
  readonly leases = new TurnLeases();
  readonly messageCapabilities: MessageCapabilityResolver;
  readonly providers = new Map<string, ContextToolProvider>();
  readonly #authorizer: CapabilityAuthorizer;
  readonly #resolver: TrustedAuthorityResolver;
  readonly #audit: AuditSink;
  readonly #createAuditId: () => string;

  constructor(options: SharedOSKernelOptions) {
    this.options = { ...options };
    this.#authorizer = options.authorizer ?? new CapabilityAuthorizer();
    this.decider = deciderOf(this.#authorizer);
    this.tools = options.tools ?? new ToolRegistry();
    this.resources = options.resources ?? new ResourceProviderRegistry();
    this.messageCapabilities = options.messageCapabilityResolver ?? new RecipientScopedMessageCapabilityResolver();
    this.#resolver = new TrustedAuthorityResolver(options.grantSource);
    this.#audit = options.audit ?? new NoopAuditSink();
    this.#createAuditId = options.createAuditId ?? randomId;
  }

  get spans(): SpanSink | undefined {
    return this.options.spans;
  }

  /** A cancelled caller stops here, as an abort and never as a refusal; everybody else's context is copied. */
  enter(given: AccessContext, signal: AbortSignal | undefined): AccessContext {
    signal?.throwIfAborted();
    const parsed = contractValue(AccessContext, given);
    if (parsed.ok) return parsed.value;
    // A context that breaks its contract is answered by the decision, in its own code. One that is no data at all cannot be.
    try {
      return frozenCopy(given);
    } catch {
      throw new ContractError('access context', parsed.error);
    }
  }

  mark(context: AccessContext): AuditMark {
    return { id: this.#createAuditId(), at: context.now, context };
  }

  /** Writes a record that has to be there before what it records goes on. */
  async recordBefore(event: AuditEvent): Promise<void> {
    try {
      await this.#audit.record(sealed(event));
    } catch (error) {
      throw new AuditUnavailableError(error);
    }
  }

  /** Writes a record of what has happened: its failure can no longer change that. */
  async recordAfter(event: AuditEvent): Promise<void> {
    try {
      await this.#audit.record(sealed(event));
    } catch (error) {
      try {
        await this.options.onAuditError?.(error, event);
      } catch {
        // The hook watches.
      }
    }
  }

  report(error: unknown, operation: ProviderErrorContext): void {
    reportContainedError(this.options.onProviderError, error, operation);
  }

  /** What is held for this context: by its open turn, or loaded now for this one operation. */
  async hold(context: AccessContext, signal: AbortSignal | undefined): Promise<Held> {
    const open = this.leaseOf(context);
    const lease = open ?? newLease();
    return { resolution: await this.load(lease, context, signal), lease, inTurn: open !== undefined };
  }

  leaseOf(context: AccessContext): Lease | undefined {
    const key = turnKey(context);
    return key === undefined ? undefined : this.leases.of(key);
  }

  load(lease: Lease, context: AccessContext, signal: AbortSignal | undefined): Promise<AuthorityResolution> {
    return lease.authority.get((own) => this.#loadAuthority(context, own), signal);
  }

  async #loadAuthority(context: AccessContext, signal: AbortSignal): Promise<AuthorityResolution> {
    const [loaded, policy] = await measure(
      this.spans,
      SPAN.AUTHORITY_LOAD,
      () => Promise.all([this.#resolver.resolve(context, signal), this.#loadPolicy(context, signal)]),
      ([{ status }], scope) => scope.set('status', status),
    );
    const ports = { hostCeiling: this.#authorizer.hasHostCeiling ? 'installed' : 'absent', policy } as const;
    if (loaded.status === 'unavailable') {
      await this.recordBefore(authorityResolved(this.mark(context), { failure: loaded }, ports));
      return loaded;
    }
    const authority = policy === undefined ? loaded.authority : withPolicy(loaded.authority, policy);
    await this.recordBefore(authorityResolved(this.mark(context), { authority }, ports));
    return { status: 'resolved', authority };
  }

  async #loadPolicy(context: AccessContext, signal: AbortSignal): Promise<PolicyResolution | undefined> {
    const { policySource } = this.options;
    if (policySource === undefined) return undefined;
    try {
      const loaded: unknown = await policySource.load(frozenCopy(context), signal);
      if (typeof loaded === 'object' && loaded !== null && 'policy' in loaded && 'version' in loaded) {
        const { policy, version } = loaded;
        if (typeof version === 'string' && version !== '') return { status: 'loaded', policy, version };
      }
      throw new TypeError('the policy source answered without a policy and its version');
    } catch (error) {
      signal.throwIfAborted();
      const { traceId, namespaceId } = context;
      this.report(error, { kind: 'policy', reasonCode: 'host_policy_unavailable', traceId, namespaceId });
      return { status: 'unavailable' };
    }
  }
}

/** The key of a turn, or nothing for a context that breaks its contract: no turn can be open for it. */
const turnKey = (context: AccessContext): string | undefined => {
  try {
    return turnAuthorityKey(context);
  } catch {
    return undefined;
  }
};

/** Authority as the rules read it; what a resolver loaded always is. */
export const heldAuthority = (resolution: Extract<AuthorityResolution, { status: 'resolved' }>): HeldAuthority => {
  const held = heldBy(resolution.authority);
  if (held === undefined) throw new ContractError('resolved authority', 'a grant of it does not meet its contract');
  return held;
};

/** The same, ready for many decisions: what one costs does not grow with the grants of its turn. */
export const compiledAuthority = (core: KernelCore, resolution: Extract<AuthorityResolution, { status: 'resolved' }>): CompiledAuthority =>
  core.decider.compiled(heldAuthority(resolution));

/** `N`, of the live context. One that cannot be read is `NaN`. */
export const instantIn = (context: AccessContext): Instant => instantOf(context.now) ?? NaN;

/** The signal a port is given where its caller brought none. */
export const signalOr = (signal: AbortSignal | undefined): AbortSignal => signal ?? new AbortController().signal;

/** One sentence a code, and never a text that was thrown. */
export const refusal = (code: string): ProtocolError => ({
  code,
  message: SENTENCES[code] ?? 'The operation was refused.',
  retryable: false,
});

const SENTENCES: Readonly<Record<string, string>> = {
  trace_mismatch: 'The call belongs to another trace.',
  stale_request: 'The call was not made within its turn.',
  tool_unavailable: 'The tool is not available.',
  tool_catalog_unavailable: 'The tools of this context could not be established.',
  invalid_tool_arguments: 'The arguments are not those of the tool.',
  tool_requirement_resolution_failed: 'What the call needs could not be established.',
  invalid_tool_requirement: 'The call needs something else than its tool declares.',
  tool_execution_failed: 'The tool failed.',
  invalid_tool_result: 'The tool did not answer this call with a result.',
  resource_provider_not_found: 'Nothing serves this resource.',
  resource_execution_failed: 'The operation on the resource failed.',
  invalid_resource_result: 'The provider did not answer this operation with a result.',
  message_context_mismatch: 'The message does not belong to its context.',
  message_requirement_resolution_failed: 'What the message needs could not be established.',
  message_transport_not_configured: 'Messages are not carried here.',
  message_delivery_failed: 'The message could not be delivered.',
  invalid_message_receipt: 'The transport did not answer for this message.',
  message_request_not_prepared: 'The message was not prepared.',
  message_request_not_accepted: 'The message was not accepted.',
  message_reply_resolution_failed: 'The reply could not be found.',
  invalid_message_reply: 'The reply does not answer this message.',
};

/** The part of a request that a record or a report carries. */
export const stated = ({ resource, action }: AuthorizationRequest) => ({ resource, action });
