import { type AccessContext, type Address, type AuditEvent, CapabilityGrant, type GrantEvent, instantOf } from '@sharedos/contracts';
import { type ToolHandler, escalateTool } from '@sharedos/kernel';
import { ToolRegistry } from '@sharedos/tools';
import type { Bag, Case, Step } from '../runner/case.ts';
import { standardTools, worldTool } from '../runner/world-tools.ts';
import type { ServiceTurn } from './service-turn.ts';
import type { ServicesSystem } from './system.ts';

const DEADLINE_MS = 10_000;
/** Nobody answers while the log is down: an asker gives up sooner, so that a case does not take long. */
const OUTAGE_DEADLINE_MS = 400;

/**
 * The world of one case on the services. All cases share one log, one ledger and one Redis, so each has namespaces of its own:
 * what it says of them is put under a prefix on the way in, and the prefix is taken off whatever comes back.
 */
export class ServicesWorld {
  readonly system: ServicesSystem;
  readonly grants: Bag[];
  readonly parents: Bag[];
  readonly turns = new Map<string, ServiceTurn>();
  readonly handlerCalls = new Map<string, number>();
  readonly #loads = new Set<string>();
  audit: AuditEvent[] = [];
  readonly #world: Bag;
  readonly #recipients: readonly Address[];
  readonly #prefix: string;
  #clock: string;
  #ids = 0;

  constructor(system: ServicesSystem, { world, steps }: Case, prefix: string) {
    this.system = system;
    this.#prefix = prefix;
    this.#world = world;
    this.#recipients = steps.flatMap(({ input }) => {
      const asked = input?.['arguments'] as { readonly recipient?: Address } | undefined;
      const recipient = (input?.['to'] as Address | undefined) ?? asked?.recipient;
      return typeof recipient === 'object' ? [recipient] : [];
    });
    this.#clock = world['clock'] as string;
    const { count, template } = (world['grantsRepeat'] ?? { count: 0, template: {} }) as { readonly count: number; readonly template: Bag };
    const repeated = Array.from({ length: count }, (_, index) => ({ ...template, id: `${String(template['id'])}-${index}` }));
    this.grants = [...(world['grants'] as Bag[]), ...repeated];
    this.parents = [...((world['parents'] as Bag[] | undefined) ?? [])];
    this.#setScene();
  }

  /** Puts what the case says stands already into the log and the ledger. */
  async begin(): Promise<void> {
    for (const grant of [...this.grants, ...this.parents]) await this.issue(grant);
    for (const [id, count] of Object.entries((this.#world['usage'] as Record<string, number> | undefined) ?? {})) {
      const grant = this.grants.find((candidate) => candidate['id'] === id);
      if (grant !== undefined) await this.system.spend(CapabilityGrant.parse(this.inside(grant)), count);
    }
    const { transport } = this.#messaging;
    // A transport that refuses is a recipient that closed its route; one that throws, inboxes that do not answer.
    if (transport === 'refuses') await this.#closeRoutes();
    if (transport === 'throws') this.setOutage('messageTransport', true);
  }

  /** Messages that were put into an inbox, after a step. */
  async delivered(): Promise<number> {
    if (this.#world['messaging'] === undefined) return 0;
    const delivered = await this.system.router.delivered(this.#namespaceId);
    if (this.#messaging.transport === 'refuses-after-first' && delivered > 0) await this.#closeRoutes();
    return delivered;
  }

  get #messaging(): { readonly transport?: string } {
    return (this.#world['messaging'] ?? {}) as { readonly transport?: string };
  }

  async #closeRoutes(): Promise<void> {
    for (const recipient of this.#recipients) await this.system.router.closeRoute(this.#namespaceId, recipient);
  }

  get #namespaceId(): string {
    return this.#prefix + String((this.#world['context'] as Bag)['namespaceId']);
  }

  /** How often authority was loaded: once for each turn. */
  get grantLoads(): number {
    return this.#loads.size;
  }

  get clock(): string {
    return this.#clock;
  }

  setClock(to: string): void {
    this.#clock = to;
    this.system.scene.clockMs = instantOf(to) ?? NaN;
  }

  setOutage(port: string, down: boolean): void {
    const { scene } = this.system;
    if (down) scene.down.add(port);
    else scene.down.delete(port);
    scene.deadlineMs = scene.down.has('grantSource') ? OUTAGE_DEADLINE_MS : DEADLINE_MS;
  }

  nextId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}-${this.#ids}`;
  }

  contextOf({ as = {} }: Pick<Step, 'as'>): AccessContext {
    const { enabledNamespaces = this.#world['enabledNamespaces'] ?? [], ...fields } = as;
    const given = { ...(this.#world['context'] as Bag), enabledToolNamespaces: enabledNamespaces, now: this.#clock, ...fields };
    return this.inside(given) as unknown as AccessContext;
  }

  async issue(grant: Bag): Promise<void> {
    const { revokedAt, ...issued } = CapabilityGrant.parse(this.inside(grant));
    await this.system.append({ category: 'grant', namespaceId: issued.namespaceId, id: issued.id }, { type: 'GrantIssued', grant: issued });
    if (revokedAt !== undefined) await this.#append(issued, { type: 'GrantRevoked', grantId: issued.id, revokedAt });
  }

  async revoke(grantId: string, at: string): Promise<void> {
    const grant = [...this.grants, ...this.parents].find(({ id }) => id === grantId);
    await this.#append(this.inside(grant as Bag), { type: 'GrantRevoked', grantId, revokedAt: at });
  }

  /** Uses on record in the world's own namespace. */
  uses(): Promise<ReadonlyMap<string, number>> {
    return this.system.usesOf(this.#namespaceId);
  }

  /** What the case says, with its namespaces under the prefix of the case. */
  inside(given: Bag): Bag {
    return { ...given, namespaceId: this.#prefix + String(given['namespaceId']) };
  }

  /** What came back, in the words of the case. */
  outside<T>(came: T): T {
    return came === undefined ? came : (JSON.parse(JSON.stringify(came).replaceAll(this.#prefix, '')) as T);
  }

  #append(grant: Bag, event: GrantEvent): Promise<void> {
    return this.system.append({ category: 'grant', namespaceId: grant['namespaceId'] as string, id: grant['id'] as string }, event);
  }

  #setScene(): void {
    const { scene } = this.system;
    scene.registry = new ToolRegistry();
    scene.asksByMessage = this.#world['messaging'] !== undefined;
    for (const handler of this.#tools()) scene.registry.register(this.#counted(handler));
    scene.toolNamespaces = (this.#world['enabledNamespaces'] as string[] | undefined) ?? [];
    scene.scripts.clear();
    scene.down.clear();
    this.setClock(this.#clock);
    scene.deadlineMs = DEADLINE_MS;
    for (const port of (this.#world['outages'] as string[] | undefined) ?? []) this.setOutage(port, true);
    scene.onAudit = (event) => this.audit.push(event);
    scene.onLoad = (turnId) => this.#loads.add(turnId);
    scene.defects.length = 0;
  }

  #tools(): readonly ToolHandler[] {
    const planes = (this.#world['standardTools'] as string[] | undefined) ?? [];
    const own = (this.#world['tools'] as Bag[] | undefined) ?? [];
    return [
      ...planes.flatMap((plane) => standardTools(plane)),
      ...own.map((tool) => worldTool(tool, async () => undefined)),
      ...(this.#world['escalationTool'] === true ? [escalateTool] : []),
    ];
  }

  #counted(handler: ToolHandler): ToolHandler {
    return {
      ...handler,
      invoke: (context, call, signal) => {
        const { name } = handler.definition;
        this.handlerCalls.set(name, (this.handlerCalls.get(name) ?? 0) + 1);
        return handler.invoke(context, call, signal);
      },
    };
  }
}
