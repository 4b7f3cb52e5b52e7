import { type Address, type AgentState, type Json, type PolicyState, decodeToken, encodeName } from '@sharedos/contracts';
import type { Position, Recorded, StreamId } from '@sharedos/event-store';
import {
  type AgentRegistration,
  type Decider,
  Defect,
  type EscalationState,
  type McpServersState,
  type SettingsState,
  type ToolSelectionState,
  agent,
  escalation,
  mcpServers,
  namespaceSettings,
  policy,
  toolSelection,
} from '@sharedos/kernel';
import { History } from '../recompute/history.ts';
import { type NamespaceCategory, mcpStream, namespaceStream, readNamespaceEvent } from './namespace-events.ts';

type Histories<State> = Map<string, History<State>>;
type KnownEscalation = Exclude<EscalationState, { status: 'absent' }>;

/** How each category is folded. The deciders that wrote the events read them back here. */
const DECIDERS = { policy, settings: namespaceSettings, toolsettings: toolSelection, agent, escalation, mcp: mcpServers } as const;

/**
 * What of a namespace is in the log beside its grants, folded: its policy, settings, choice of tools, agents and escalations, at
 * any revision that was not forgotten. A projection refuses nothing: what it cannot understand, it names.
 */
export class NamespaceIndex {
  readonly #histories: Readonly<Record<NamespaceCategory, Histories<unknown>>> = {
    policy: new Map(),
    settings: new Map(),
    toolsettings: new Map(),
    agent: new Map(),
    escalation: new Map(),
    mcp: new Map(),
  };

  /** @returns Why the event was not understood; `undefined` when it was. An event of grants is none of ours, and is understood. */
  apply({ stream, event, position }: Recorded): string | undefined {
    const { category } = stream;
    if (category === 'grant') return undefined;
    const read = readNamespaceEvent(category)(event);
    if (read === undefined) return `${event.type} of version ${event.schemaVersion} is not known`;
    const decider = DECIDERS[category] as Decider<unknown, never, unknown, unknown>;
    const histories = this.#histories[category];
    const key = keyOf(stream);
    const history = histories.get(key) ?? new History<unknown>();
    try {
      history.add(position, decider.evolve(history.last ?? decider.initial, read));
    } catch (error) {
      if (error instanceof Defect) return `${event.type} cannot follow what its stream holds before it`;
      throw error;
    }
    histories.set(key, history);
    return undefined;
  }

  policyAt(namespaceId: string, position: Position): PolicyState {
    return (this.#at(namespaceStream('policy', namespaceId), position) as PolicyState | undefined) ?? policy.initial;
  }

  settingsAt(namespaceId: string, position: Position): SettingsState {
    return (this.#at(namespaceStream('settings', namespaceId), position) as SettingsState | undefined) ?? namespaceSettings.initial;
  }

  toolSelectionAt(namespaceId: string, position: Position): ToolSelectionState {
    return (this.#at(namespaceStream('toolsettings', namespaceId), position) as ToolSelectionState | undefined) ?? toolSelection.initial;
  }

  agentAt(namespaceId: string, agentId: string, position: Position): AgentRegistration {
    return this.#at({ category: 'agent', namespaceId, id: agentId }, position) as AgentState | undefined;
  }

  mcpServersAt(namespaceId: string, owner: Address, position: Position): McpServersState {
    return (this.#at(mcpStream(namespaceId, owner), position) as McpServersState | undefined) ?? mcpServers.initial;
  }

  escalationAt(namespaceId: string, id: string, position: Position): EscalationState {
    return (this.#at({ category: 'escalation', namespaceId, id }, position) as EscalationState | undefined) ?? escalation.initial;
  }

  /** Every question of a namespace, in no order. */
  escalationsAt(namespaceId: string, position: Position): readonly KnownEscalation[] {
    const prefix = `${encodeName(namespaceId)}.`;
    return [...this.#histories.escalation].flatMap(([key, history]) => {
      const state = key.startsWith(prefix) ? (history.at(position) as EscalationState | undefined) : undefined;
      return state === undefined || state.status === 'absent' ? [] : [state];
    });
  }

  /** Every question of every namespace as it is now, in no order, and where that was written. */
  *everyEscalation(): Generator<{ readonly namespaceId: string; readonly state: KnownEscalation; readonly position: Position }> {
    for (const [key, history] of this.#histories.escalation) {
      const state = history.last as EscalationState | undefined;
      const namespaceId = decodeToken(key.slice(0, key.indexOf('.')));
      if (state !== undefined && state.status !== 'absent' && namespaceId.ok)
        yield { namespaceId: namespaceId.value, state, position: history.lastPosition };
    }
  }

  /** Forgets what only revisions below a position are answered from. */
  forget(below: Position): void {
    for (const histories of Object.values(this.#histories)) for (const history of histories.values()) history.forget(below);
  }

  /** All of it as JSON, to start from again. */
  snapshot(): Json {
    const saved = Object.entries(this.#histories).map(([category, histories]) => [
      category,
      [...histories].map(([key, history]) => [key, history.entries()]),
    ]);
    return { version: SNAPSHOT_VERSION, histories: Object.fromEntries(saved) } as Json;
  }

  /**
   * The index that a snapshot was taken of. What it holds was parsed when it was folded, so only its version is judged here.
   *
   * @returns `undefined` for a snapshot of another version: the log is then folded from its beginning.
   */
  static restore(snapshot: Json): NamespaceIndex | undefined {
    const saved = snapshot as unknown as Partial<Saved>;
    if (saved.version !== SNAPSHOT_VERSION || saved.histories === undefined) return undefined;
    const index = new NamespaceIndex();
    for (const [category, histories] of Object.entries(saved.histories)) {
      const restored = index.#histories[category as NamespaceCategory];
      for (const [key, entries] of histories) {
        const history = new History<unknown>();
        for (const [position, state] of entries) history.add(position, state);
        restored.set(key, history);
      }
    }
    return index;
  }

  #at(stream: StreamId, position: Position): unknown {
    // No stream can be named for half of a surrogate pair, so nothing was ever said of it; a turn may still ask.
    if (!stream.id.isWellFormed()) return undefined;
    return this.#histories[stream.category as NamespaceCategory].get(keyOf(stream))?.at(position);
  }
}

const SNAPSHOT_VERSION = 1;

interface Saved {
  readonly version: number;
  readonly histories: Readonly<Record<NamespaceCategory, readonly (readonly [string, readonly (readonly [Position, unknown])[]])[]>>;
}

const keyOf = ({ namespaceId, id }: StreamId): string => encodeName(namespaceId, id);
