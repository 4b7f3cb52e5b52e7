import {
  type AccessContext,
  type Address,
  type AuditEvent,
  type CapabilityGrant,
  type DeliveryResult,
  type JsonObj,
  type MessageEnvelope,
  type Path,
  type ToolDefinition,
  instantOf,
  sameAddress,
  sameJson,
} from '@sharedos/contracts';
import {
  AGENT_CARD_TOOL_NAME,
  CapabilityAuthorizer,
  type ContextToolProvider,
  type HostCeiling,
  type HostCeilingVerdict,
  InMemoryOperationReplayStore,
  InMemoryToolNamespaceSettings,
  MESSAGE_REQUEST_TOOL_DEFINITION,
  MESSAGE_REQUEST_TOOL_NAME,
  type ResourceProvider,
  SPAN,
  SharedOSKernel,
  type ToolHandler,
  type TurnAuthorityScope,
  escalateTool,
} from '@sharedos/kernel';
import { type Bag, type Step, UnknownToRunner, onlyKnown } from './case.ts';
import { standardTools, worldTool } from './world-tools.ts';

const WORLD_KEYS = [
  ...['clock', 'context', 'enabledNamespaces', 'grants', 'grantsRepeat', 'parents', 'store', 'resolverIgnoresNamespace', 'usage'],
  ...['missing', 'outages', 'grantVerifier', 'hostPolicy', 'standardTools', 'tools', 'toolProviders', 'namespaceSettings'],
  ...['resourceProviders', 'messaging', 'escalationTool', 'liveRevocation', 'freshness', 'replay', 'views'],
];
const PORTS_MISSING = ['usageStore', 'delegationResolver', 'namespaceSettings'];
const PORTS_DOWN = ['grantSource', 'usageStore', 'delegationResolver', 'policySource', 'revocationSource', 'messageTransport'];
const POLICY_KEYS = ['mode', 'version', 'deny', 'behaviour'];
const RULE_KEYS = ['namespace', 'under', 'actions', 'grantIds', 'actors', 'metadata'];
const BEHAVIOURS = ['throws', 'returns-nothing', 'returns-promise', 'names-other-grant', 'foreign-code'];
const TRANSPORTS = ['accepts', 'delivers', 'refuses', 'refuses-after-first', 'throws', 'wrong-receipt', 'absent'];
const KERNEL_TOOLS: ReadonlySet<string> = new Set([MESSAGE_REQUEST_TOOL_NAME, AGENT_CARD_TOOL_NAME]);
const ROUTERS = ['ok', 'failing', 'wrong-reply', 'absent'];

export interface HostPolicy {
  readonly mode: 'static' | 'loaded' | 'source-only';
  readonly version?: string;
  readonly deny?: readonly {
    readonly namespace?: string;
    readonly under?: Path;
    readonly actions?: readonly string[];
    readonly grantIds?: readonly string[];
    readonly actors?: readonly Address[];
    readonly metadata?: JsonObj;
  }[];
  readonly behaviour?: string;
}

export interface Counts {
  grantLoads: number;
  policyLoads: number;
  ceilingCalls: number;
  catalogResolutions: number;
  deliveries: number;
  readonly handlerCalls: Map<string, number>;
}

/** One kernel and the turn that is open in it. Each turn has its own, so that a step outside it is a turn of one operation. */
export interface OpenTurn {
  readonly kernel: SharedOSKernel;
  readonly scopes: TurnAuthorityScope[];
}

/** The world of one case: every port of the host, and the kernels over them. */
export class Stage {
  clock: string;
  grants: Bag[];
  readonly parents: Bag[];
  readonly usage = new Map<string, number>();
  readonly outages: Set<string>;
  readonly revoked = new Set<string>();
  readonly turns = new Map<string, OpenTurn>();
  readonly counts: Counts = {
    grantLoads: 0,
    policyLoads: 0,
    ceilingCalls: 0,
    catalogResolutions: 0,
    deliveries: 0,
    handlerCalls: new Map(),
  };
  policy: HostPolicy | undefined;
  enabledNamespaces: readonly string[];
  audit: AuditEvent[] = [];
  readonly context: Bag;
  /** The kernel of whatever happens outside a turn. It never has one open. */
  readonly kernel: SharedOSKernel;
  readonly #world: Bag;
  readonly #missing: ReadonlySet<string>;
  readonly #provided = new Map<string, Bag[]>();
  readonly #perform: (step: Step, kernel: SharedOSKernel, context: AccessContext) => Promise<unknown>;
  readonly #operations = new InMemoryOperationReplayStore();
  #ids = 0;

  /** @param perform Carries out a step that a handler makes from inside. */
  constructor(world: Bag, perform: (step: Step, kernel: SharedOSKernel, context: AccessContext) => Promise<unknown>) {
    onlyKnown('the world', world, WORLD_KEYS);
    if (world['views'] === true) throw new UnknownToRunner('views are not offered');
    this.#world = world;
    this.#perform = perform;
    this.clock = world['clock'] as string;
    this.context = world['context'] as Bag;
    this.enabledNamespaces = (world['enabledNamespaces'] as string[] | undefined) ?? [];
    this.grants = [...(world['grants'] as Bag[]), ...repeated(world['grantsRepeat'] as Bag | undefined)];
    this.parents = [...((world['parents'] as Bag[] | undefined) ?? [])];
    for (const [grantId, count] of Object.entries((world['usage'] as Record<string, number> | undefined) ?? {}))
      this.usage.set(this.counter(grantId), count);
    this.#missing = new Set(known('port', (world['missing'] as string[] | undefined) ?? [], PORTS_MISSING));
    this.outages = new Set((world['outages'] as string[] | undefined) ?? []);
    for (const port of this.outages) checkPort(port);
    this.setPolicy(world['hostPolicy'] as Bag | undefined);
    for (const provider of (world['toolProviders'] as Bag[] | undefined) ?? []) {
      onlyKnown('a tool provider', provider, ['id', 'tools', 'forActors']);
      this.#provided.set(provider['id'] as string, provider['tools'] as Bag[]);
    }
    this.kernel = this.newKernel();
  }

  nextId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}-${this.#ids}`;
  }

  /** The key of a grant's counter, in the world's own namespace unless another is named. */
  counter(grantId: string, namespaceId: unknown = this.context['namespaceId']): string {
    return JSON.stringify([namespaceId, grantId]);
  }

  contextOf({ as = {} }: Pick<Step, 'as'>): AccessContext {
    const { enabledNamespaces = this.enabledNamespaces, ...fields } = as;
    return { ...this.context, enabledToolNamespaces: enabledNamespaces, now: this.clock, ...fields } as unknown as AccessContext;
  }

  setPolicy(changes: Bag | undefined): void {
    if (changes === undefined) return;
    onlyKnown('the host policy', changes, POLICY_KEYS);
    const policy = { ...this.policy, ...changes } as HostPolicy;
    for (const rule of policy.deny ?? []) onlyKnown('a rule of the host policy', rule, RULE_KEYS);
    known('behaviour', policy.behaviour === undefined ? [] : [policy.behaviour], BEHAVIOURS);
    known('mode', [policy.mode], ['static', 'loaded', 'source-only']);
    this.policy = policy;
  }

  setOutage(port: string, down: boolean): void {
    checkPort(port);
    if (down) this.outages.add(port);
    else this.outages.delete(port);
  }

  moveTool(provider: string, tools: Bag[]): void {
    this.#provided.set(provider, tools);
  }

  stored(id: unknown): Bag {
    const grant = [...this.grants, ...this.parents].find((candidate) => candidate['id'] === id);
    if (grant === undefined) throw new UnknownToRunner(`the case has no grant ${String(id)}`);
    return grant;
  }

  /** Every definition a turn could be offered, for a turn that asks for all of them. */
  definitions(): readonly ToolDefinition[] {
    const provided = [...this.#provided.values()].flat().map((tool) => worldTool(tool, async () => undefined));
    const all = [...this.#staticTools(() => this.kernel), ...provided].map(({ definition }) => definition);
    return [...all, MESSAGE_REQUEST_TOOL_DEFINITION];
  }

  /** A kernel over the ports of this world. All share what the ports hold, and none shares an open turn. */
  newKernel(): SharedOSKernel {
    const kernel: SharedOSKernel = new SharedOSKernel({
      grantSource: { load: async (context) => this.#load(context) },
      ...(this.policy === undefined || this.policy.mode === 'static' ? {} : { policySource: { load: async () => this.#loadPolicy() } }),
      authorizer: this.#authorizer(),
      audit: {
        record: async (event) => {
          this.audit.push(event);
        },
      },
      createAuditId: () => this.nextId('audit'),
      createMessageId: () => this.nextId('message'),
      ...(this.#missing.has('namespaceSettings') ? {} : { toolNamespaceSettings: this.#settings() }),
      ...this.#messaging(),
      refuseStaleCalls: this.#world['freshness'] === true,
      ...(this.#world['replay'] === true ? { operationReplay: this.#operations } : {}),
      // The tools that the kernel brings are no host's to count; that they were entered shows in what it measures.
      spans: {
        record: ({ name, attributes }) => {
          const { tool } = attributes;
          if (name === SPAN.TOOL_HANDLER && KERNEL_TOOLS.has(tool as string)) this.#entered(tool as string);
        },
      },
    });
    for (const handler of this.#staticTools(() => kernel)) kernel.registerTool(this.#counted(handler));
    // Counts how often a catalogue is built: every building asks every provider.
    kernel.registerToolProvider({
      id: '~counter',
      listTools: async () => {
        this.counts.catalogResolutions += 1;
        return [];
      },
    });
    for (const provider of this.#toolProviders(() => kernel)) kernel.registerToolProvider(provider);
    for (const provider of this.#resourceProviders()) kernel.registerResourceProvider(provider);
    return kernel;
  }

  #entered(name: string): void {
    this.counts.handlerCalls.set(name, (this.counts.handlerCalls.get(name) ?? 0) + 1);
  }

  #counted(handler: ToolHandler): ToolHandler {
    return {
      ...handler,
      invoke: (context, call, signal) => {
        this.#entered(handler.definition.name);
        return handler.invoke(context, call, signal);
      },
    };
  }

  #staticTools(kernel: () => SharedOSKernel): ToolHandler[] {
    const planes = (this.#world['standardTools'] as string[] | undefined) ?? [];
    const own = (this.#world['tools'] as Bag[] | undefined) ?? [];
    return [
      ...planes.flatMap((plane) => standardTools(plane)),
      ...own.map((tool) => worldTool(tool, (step, context) => this.#perform(step, kernel(), context))),
      ...(this.#world['escalationTool'] === true ? [escalateTool] : []),
    ];
  }

  #toolProviders(kernel: () => SharedOSKernel): ContextToolProvider[] {
    return ((this.#world['toolProviders'] as Bag[] | undefined) ?? []).map(({ id, forActors }) => ({
      id: id as string,
      listTools: async (context) => {
        if (this.outages.has(`toolProvider:${String(id)}`)) throw new Error('the tool provider is down');
        if (forActors !== undefined && !(forActors as Address[]).some((actor) => sameAddress(actor, context.actor))) return [];
        const tools = this.#provided.get(id as string) ?? [];
        return tools.map((tool) => this.#counted(worldTool(tool, (step, inside) => this.#perform(step, kernel(), inside))));
      },
    }));
  }

  #resourceProviders(): ResourceProvider[] {
    const providers = Object.entries((this.#world['resourceProviders'] as Record<string, string> | undefined) ?? {});
    return providers.map(([namespace, behaviour]) => {
      known('resource provider', [behaviour], ['ok', 'throws', 'wrong-operation']);
      return {
        namespace,
        invoke: async ({ operationId, context }) => {
          this.#entered(`resource:${namespace}`);
          if (behaviour === 'throws') throw new Error('the provider fell');
          const named = behaviour === 'wrong-operation' ? `${operationId}-other` : operationId;
          return { status: 'succeeded', operationId: named, completedAt: context.now, output: { done: true } };
        },
      };
    });
  }

  #load(context: AccessContext): readonly CapabilityGrant[] {
    this.counts.grantLoads += 1;
    this.#outage('grantSource');
    const asked = (grant: Bag | null): boolean =>
      grant !== null &&
      grant['namespaceId'] === context.namespaceId &&
      sameJson(grant['subject'] ?? null, context.actor) &&
      sameJson(grant['issuer'] ?? null, context.authority);
    const { store = 'scoped' } = this.#world;
    known('store', [store as string], ['scoped', 'verbatim']);
    return structuredClone(store === 'verbatim' ? this.grants : this.grants.filter(asked)) as unknown as CapabilityGrant[];
  }

  #loadPolicy(): { readonly policy: HostPolicy; readonly version: string } {
    this.counts.policyLoads += 1;
    this.#outage('policySource');
    const policy = structuredClone(this.policy as HostPolicy);
    return { policy, ...(policy.version === undefined ? {} : { version: policy.version }) } as { policy: HostPolicy; version: string };
  }

  #outage(port: string): void {
    if (this.outages.has(port)) throw new Error(`${port} is down`);
  }

  #authorizer(): CapabilityAuthorizer {
    const ceiling = this.#ceiling();
    const verifier = this.#world['grantVerifier'] as { readonly rejects?: string[]; readonly throwsOn?: string[] } | undefined;
    if (verifier !== undefined) onlyKnown('the grant verifier', verifier, ['rejects', 'throwsOn']);
    return new CapabilityAuthorizer({
      ...(this.#missing.has('usageStore') ? {} : { usageStore: this.#usageStore() }),
      ...(this.#missing.has('delegationResolver')
        ? {}
        : { delegationResolver: { resolve: async (...asked) => this.resolveAncestor(...asked) } }),
      ...(ceiling === undefined ? {} : { hostCeiling: ceiling }),
      ...(verifier === undefined
        ? {}
        : {
            grantVerifier: {
              verify: async ({ id }) => {
                if (verifier.throwsOn?.includes(id) === true) throw new Error('the verifier fell');
                return verifier.rejects?.includes(id) !== true;
              },
            },
          }),
      ...(this.#world['liveRevocation'] === true
        ? {
            liveRevocation: {
              revoked: async (_namespaceId, grantIds) => {
                this.#outage('revocationSource');
                return { revision: String(this.revoked.size), revokedGrantIds: grantIds.filter((id) => this.revoked.has(id)) };
              },
            },
          }
        : {}),
    });
  }

  #usageStore() {
    return {
      getUsage: async (namespaceId: string, grantId: string) => {
        this.#outage('usageStore');
        return this.usage.get(this.counter(grantId, namespaceId)) ?? 0;
      },
      tryConsume: async (namespaceId: string, grantId: string, maximumUses: number) => {
        this.#outage('usageStore');
        const counter = this.counter(grantId, namespaceId);
        const used = this.usage.get(counter) ?? 0;
        if (used >= maximumUses) return false;
        this.usage.set(counter, used + 1);
        return true;
      },
    };
  }

  resolveAncestor(namespaceId: string, grantId: string): CapabilityGrant | undefined {
    this.#outage('delegationResolver');
    const inScope = (grant: Bag): boolean => this.#world['resolverIgnoresNamespace'] === true || grant['namespaceId'] === namespaceId;
    const found = [...this.grants, ...this.parents].find((grant) => grant['id'] === grantId && inScope(grant));
    return structuredClone(found) as unknown as CapabilityGrant | undefined;
  }

  get hasResolver(): boolean {
    return !this.#missing.has('delegationResolver');
  }

  #ceiling(): HostCeiling | undefined {
    if (this.policy === undefined || this.policy.mode === 'source-only') return undefined;
    const { mode } = this.policy;
    return {
      narrow: (decision, request, context, loaded) => {
        this.counts.ceilingCalls += 1;
        const policy = (mode === 'loaded' ? loaded : this.policy) as HostPolicy;
        if (policy.behaviour === 'throws') throw new Error('the ceiling fell');
        const answer = verdictOf(policy, decision, request, context);
        if (policy.behaviour === 'returns-nothing') return undefined as unknown as HostCeilingVerdict;
        if (policy.behaviour === 'returns-promise') return Promise.resolve(answer) as unknown as HostCeilingVerdict;
        if (policy.behaviour === 'names-other-grant') return { ...decision, matchedGrantId: 'g-of-nobody' };
        if (policy.behaviour === 'foreign-code' && !answer.allowed)
          return { ...answer, reasonCode: 'no_matching_grant' } as unknown as HostCeilingVerdict;
        return answer;
      },
    };
  }

  #settings(): InMemoryToolNamespaceSettings {
    const settings = this.#world['namespaceSettings'] as { readonly allowed?: string[] } | undefined;
    if (settings !== undefined) onlyKnown('the namespace settings', settings, ['allowed']);
    return new InMemoryToolNamespaceSettings(settings?.allowed);
  }

  #messaging(): Bag {
    const messaging = this.#world['messaging'] as Bag | undefined;
    if (messaging === undefined) return {};
    onlyKnown('messaging', messaging, ['transport', 'router', 'throwsText']);
    const { transport = 'absent', router = 'absent', throwsText } = messaging;
    known('transport', [transport as string], TRANSPORTS);
    known('router', [router as string], ROUTERS);
    return {
      ...(transport === 'absent'
        ? {}
        : {
            messageTransport: {
              deliver: async (context: AccessContext, { id }: MessageEnvelope): Promise<DeliveryResult> => {
                this.counts.deliveries += 1;
                this.#outage('messageTransport');
                const receipt = { messageId: transport === 'wrong-receipt' ? `${id}-other` : id, timestamp: context.now };
                if (transport === 'throws') throw new Error((throwsText as string | undefined) ?? 'the transport fell');
                if (transport === 'refuses' || (transport === 'refuses-after-first' && this.counts.deliveries > 1))
                  return { status: 'denied', ...receipt, error: { code: 'route_closed', message: 'No route leads there.' } };
                return { status: transport === 'delivers' ? 'delivered' : 'accepted', ...receipt };
              },
            },
          }),
      ...(router === 'absent'
        ? {}
        : {
            messageRequestRouter: {
              resolveReply: async (context: AccessContext, request: MessageEnvelope): Promise<MessageEnvelope> => {
                if (router === 'failing') throw new Error('the router fell');
                return {
                  version: '1',
                  id: this.nextId('reply'),
                  sender: request.receiver,
                  receiver: request.sender,
                  purpose: request.purpose,
                  payload: { reply: true },
                  traceId: request.traceId,
                  createdAt: context.now,
                  replyTo: router === 'wrong-reply' ? `${request.id}-other` : request.id,
                };
              },
            },
          }),
    };
  }

  get now(): number {
    return instantOf(this.clock) ?? NaN;
  }
}

const verdictOf = (
  { deny = [] }: HostPolicy,
  decision: Parameters<HostCeiling['narrow']>[0],
  { resource, action }: Parameters<HostCeiling['narrow']>[1],
  { actor }: AccessContext,
): HostCeilingVerdict => {
  const rule = deny.find(
    ({ namespace, under, actions, grantIds, actors }) =>
      (namespace === undefined || namespace === resource.namespace) &&
      (under === undefined || under.every((segment, index) => resource.path[index] === segment)) &&
      (actions === undefined || actions.includes(action)) &&
      (grantIds === undefined || grantIds.includes(decision.matchedGrantId)) &&
      (actors === undefined || actors.some((one) => sameAddress(one, actor))),
  );
  if (rule === undefined) return decision;
  return { allowed: false, reasonCode: 'host_policy_denied', ...(rule.metadata === undefined ? {} : { metadata: rule.metadata }) };
};

const repeated = (repeat: Bag | undefined): Bag[] => {
  if (repeat === undefined) return [];
  onlyKnown('grantsRepeat', repeat, ['count', 'template']);
  const template = repeat['template'] as Bag;
  return Array.from({ length: repeat['count'] as number }, (_, index) => ({ ...template, id: `${String(template['id'])}-${index}` }));
};

const known = (what: string, names: readonly string[], all: readonly string[]): readonly string[] => {
  for (const name of names) if (!all.includes(name)) throw new UnknownToRunner(`no ${what} is called ${name}`);
  return names;
};

const checkPort = (port: string): void => {
  if (!port.startsWith('toolProvider:')) known('port', [port], PORTS_DOWN);
};
