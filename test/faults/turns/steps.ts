import type { ServiceName } from '@sharedos/contracts';

/**
 * The arrows of one mediated call and of one turn, by the service that draws them: what it sends, what it waits for, and the effect
 * itself. Each is a step that something can happen before, and after.
 */
export const ARROWS = {
  'tool-executor': [
    'ledger.claimed',
    'authority.open',
    'authority.decide',
    'authority.reach',
    'ledger.use',
    'ledger.opened',
    'ledger.admitted',
    'effect',
    'ledger.settled',
    'ledger.ended',
    'turn.result',
    'acknowledge',
  ],
  authorizer: ['counters.take', 'audit'],
  'messaging-router': ['ledger.claimed', 'authority.decide', 'ledger.use', 'ledger.admitted', 'inbox', 'ledger.ended'],
  'audit-projector': ['audit'],
} as const satisfies Record<ServiceName, readonly string[]>;

export type Step = `${'before' | 'after'} ${string}`;

/** What is done to the process that comes to a step, or to a server while it stands there. */
export type Blow =
  | 'kill'
  | 'freeze'
  | 'freeze until answered'
  | 'kill nats'
  | 'kill redis'
  | 'wipe redis'
  | 'roll redis back'
  | 'wipe redis, then kill';

const STOPPING: ReadonlySet<Blow> = new Set(['freeze', 'freeze until answered', 'wipe redis, then kill']);
/** Whether the process stands still from the blow on, until somebody lets it go on or ends it. */
export const standsStill = (blow: Blow): boolean => STOPPING.has(blow);

/** One process's fate: at the `nth` time that it comes to `step`, `blow` falls. */
export interface Fate {
  readonly step: Step;
  readonly nth: number;
  readonly blow: Blow;
}

/** What the network does to one message. `lose answer`: it arrives, and the answer does not. */
export const TROUBLES = ['drop', 'lose answer', 'duplicate', 'delay before', 'delay after'] as const;
export type Trouble = (typeof TROUBLES)[number];

/** Which of the guards are taken out, to see that the run notices. Only ever here, never in a service. */
export const GUARDS = ['fence', 'claim', 'epoch'] as const;
export type Guard = (typeof GUARDS)[number];

/** All that one process is told of the storm, in its environment. */
export interface Weather {
  readonly seed: number;
  readonly fate?: Fate | undefined;
  /** Messages in trouble, of a thousand. */
  readonly troubledPerMille: number;
  readonly without?: Guard | undefined;
  /** How long each effect is under way before it happens. */
  readonly effectMs?: number | undefined;
  /** Whether tools do not hear that they are to stop. */
  readonly isDeaf?: boolean | undefined;
}

export const WEATHER_VARIABLE = 'SHAREDOS_TEST_WEATHER';
/** The line a process prints to ask for a blow on a server, or to be let go on after it froze. */
export const BLOW_EVENT = 'test blow';
