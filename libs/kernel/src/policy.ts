import {
  type Address,
  type Instant,
  type PolicyDocument,
  type PolicyEvent,
  type PolicyState,
  RULES_LANGUAGE,
  STOPS_MAX,
  type StopTarget,
  canonicalJson,
  timestampOf,
} from '@sharedos/contracts';
import { type Decider, accept, refuse, unreachable } from './decider.ts';
import { type VersionConflict, versionConflict } from './version-conflict.ts';

/** A document comes here only after its language understood it. */
export type PolicyCommand =
  | { readonly type: 'SetPolicy'; readonly document: PolicyDocument; readonly expectedVersion?: number | undefined }
  | { readonly type: 'Stop'; readonly target: StopTarget; readonly reason: string; readonly by: Address; readonly at: Instant }
  | { readonly type: 'Resume'; readonly target: StopTarget; readonly reason?: string | undefined };

export type PolicyRefusal = VersionConflict | { readonly code: 'too_many_stops' | 'not_stopped' };

export const sameTarget = (a: StopTarget, b: StopTarget): boolean => canonicalJson(a) === canonicalJson(b);

/** The policy of a namespace: a document that is replaced as a whole, and stops beside it that no document ends. */
export const policy: Decider<PolicyState, PolicyCommand, PolicyEvent, PolicyRefusal> = {
  initial: { document: { language: RULES_LANGUAGE, rules: [] }, stops: [], version: 0 },
  decide: (command, state) => {
    switch (command.type) {
      case 'SetPolicy': {
        const conflict = versionConflict(command.expectedVersion, state.version);
        if (conflict !== undefined) return refuse(conflict);
        if (canonicalJson(command.document) === canonicalJson(state.document)) return accept([]);
        return accept([{ type: 'PolicySet', document: command.document }]);
      }
      case 'Stop': {
        const { target, reason, by, at } = command;
        // What is stopped stays as it was stopped first: the reason that counts is the one it was stopped for.
        if (state.stops.some((stop) => sameTarget(stop.target, target))) return accept([]);
        if (state.stops.length >= STOPS_MAX) return refuse({ code: 'too_many_stops' });
        return accept([{ type: 'Stopped', stop: { target, reason, by, at: timestampOf(at) } }]);
      }
      case 'Resume': {
        const { target, reason } = command;
        if (!state.stops.some((stop) => sameTarget(stop.target, target))) return refuse({ code: 'not_stopped' });
        return accept([{ type: 'Resumed', target, ...(reason === undefined ? {} : { reason }) }]);
      }
      default:
        return unreachable(command);
    }
  },
  evolve: (state, event) => {
    const version = state.version + 1;
    switch (event.type) {
      case 'PolicySet':
        return { ...state, version, document: event.document };
      case 'Stopped':
        return { ...state, version, stops: [...state.stops, event.stop] };
      case 'Resumed':
        return { ...state, version, stops: state.stops.filter(({ target }) => !sameTarget(target, event.target)) };
      default:
        return unreachable(event);
    }
  },
};
